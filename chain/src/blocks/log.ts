export interface Log {
  readonly address: Uint8Array;
  readonly topics: readonly Uint8Array[];
  readonly data: Uint8Array;
  /** Where most of the data comes from, if known. */
  readonly copied?: CopiedBytes;
}

/** Bytes of a log's data that are a copy of other bytes. */
export interface CopiedBytes {
  readonly dataOffset: number;
  readonly length: number;
  /** The memory that holds the original bytes, and their offset in it. */
  readonly buffer: ArrayBufferLike;
  readonly byteOffset: number;
}
