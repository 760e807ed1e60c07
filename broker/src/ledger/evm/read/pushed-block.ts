/** A final block of a chain in this process, with all its logs as bytes. */
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
    readonly logs: readonly PushedLog[];
  }[];
}

interface PushedLog {
  readonly address: Uint8Array;
  readonly topics: readonly Uint8Array[];
  readonly data: Uint8Array;
}
