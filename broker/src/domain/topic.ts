import type { TopicName } from "./topic-name.ts";

/** A 20-byte chain address, `0x` and 40 lower-case hex digits. */
export type Address = `0x${string}`;

/** A 32-byte hash, `0x` and 64 lower-case hex digits. */
export type Hash = `0x${string}`;

/** A topic and its progress. `createdTimestamp` is milliseconds since the epoch; `blockNumber` is 0 before the first event. */
export interface Topic {
  readonly name: TopicName;
  readonly address: Address;
  /** The account that opened the topic. */
  readonly sender: Address;
  readonly createdTimestamp: number;
  /** The highest sequence that was used; events that the index skipped count too. */
  readonly sequence: number;
  /** The block that last raised `sequence`. */
  readonly blockNumber: number;
  readonly closed: boolean;
}
