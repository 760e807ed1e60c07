import { MalformedBatchError } from "../batch/malformed-batch-error.ts";
import { RlpList, toInteger } from "./rlp-items.ts";

/** The fields of a block header that a proof needs. */
export interface ProvenHeader {
  readonly receiptsRoot: Uint8Array;
  readonly number: number;
  /** Seconds since the epoch, on most chains. */
  readonly timestamp: number;
}

const receiptsRootPlace = 5;
const numberPlace = 8;
const timestampPlace = 11;
const hashBytes = 32;

/** Reads a header of any fork: later forks only append fields. @throws MalformedBatchError. */
export function readProvenHeader(bytes: Uint8Array): ProvenHeader {
  const fields = new RlpList(bytes).strings();
  const { [receiptsRootPlace]: receiptsRoot, [numberPlace]: number, [timestampPlace]: timestamp } = fields;
  if (receiptsRoot?.length !== hashBytes || number === undefined || timestamp === undefined) {
    throw new MalformedBatchError("too few fields, or a receiptsRoot that is not a hash");
  }
  return { receiptsRoot, number: toInteger(number), timestamp: toInteger(timestamp) };
}
