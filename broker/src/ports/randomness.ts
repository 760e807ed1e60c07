/** Randomness for `engine`. */
export interface Randomness {
  /** A number in [0,1), for jitter. */
  fraction(): number;
  /** A random UUID (version 4) in lower case. */
  uuid(): string;
  /** Bytes that nobody can predict, for a secret. */
  bytes(count: number): Uint8Array;
}
