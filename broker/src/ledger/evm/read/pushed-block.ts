import type { RawLog } from "./parse-log.ts";

/** A final block of a chain in this process, with all its logs. */
export interface PushedBlock {
  readonly hash: Uint8Array;
  readonly header: {
    readonly number: bigint;
    readonly parentHash: Uint8Array;
    /** Seconds since the epoch. */
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
