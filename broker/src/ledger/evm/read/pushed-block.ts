import type { Hex } from "@stele/eth/node";
import type { Address } from "../../../domain/topic.ts";

/** A final block of the embedded chain, with all its logs. */
export interface PushedBlock {
  readonly hash: Uint8Array;
  readonly header: {
    readonly number: bigint;
    readonly parentHash: Uint8Array;
    /** Unix time in seconds. */
    readonly timestamp: bigint;
    readonly baseFeePerGas: bigint;
    readonly gasLimit: bigint;
  };
  readonly transactions: readonly {
    readonly hash: Uint8Array;
    readonly firstLogIndex: number;
    readonly logs: readonly RawLog[];
  }[];
}

/** A log with its data as bytes. */
export interface RawLog {
  /** The address of the contract that wrote it, in lower case. */
  readonly address: Address;
  readonly topics: readonly Hex[];
  readonly data: Buffer;
}
