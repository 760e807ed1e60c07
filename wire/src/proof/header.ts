import { MalformedError, RlpList, toInteger } from "@stele/eth";

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

/** Reads a header of any fork: later forks only append fields. @throws MalformedError. */
export function readProvenHeader(bytes: Uint8Array): ProvenHeader {
  const fields = new RlpList(bytes).strings();
  const { [receiptsRootPlace]: receiptsRoot, [numberPlace]: number, [timestampPlace]: timestamp } = fields;
  if (receiptsRoot?.length !== hashBytes || number === undefined || timestamp === undefined) {
    throw new MalformedError("too few fields, or a receiptsRoot that is not a hash");
  }
  return { receiptsRoot, number: toInteger(number), timestamp: toInteger(timestamp) };
}
