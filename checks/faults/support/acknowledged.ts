/** An event whose publish the broker acknowledged. */
export interface Acknowledged {
  readonly topic: string;
  readonly eventId: string;
  readonly content: string;
}

/** What the broker had promised its clients before a fault, and what they had sent. Tests compare the broker's answers after the fault with this. */
export interface Promised {
  readonly topics: readonly string[];
  readonly events: readonly Acknowledged[];
  /** Topic by content, of every event that a client sent, acknowledged or not. No two events have the same content. */
  readonly sent: ReadonlyMap<string, string>;
  /** The subscription to every topic, made before the first event. Undefined if the fault came before the broker answered the subscribe call. */
  readonly subscriptionId: string | undefined;
  /** A subscription to one topic, made after the first events. Undefined if there is none. */
  readonly lateSubscriptionId?: string | undefined;
  /** Identifiers of the events that the broker sent to the receiver of `subscriptionId` before the fault. */
  readonly delivered: ReadonlySet<string>;
  /** A retained event. A test that has one also created the two sessions of promised-session.ts, before the first event. */
  readonly retained?: Acknowledged | undefined;
  /** Hashes that some blocks had before the fault, by block number. */
  readonly blockHashes: ReadonlyMap<number, string>;
}
