/** An event that was acknowledged. */
export interface Acknowledged {
  readonly topic: string;
  readonly eventId: string;
  readonly content: string;
}

/** What clients knew before a fault. Tests compare the broker with it after the fault. */
export interface Promised {
  readonly topics: readonly string[];
  readonly events: readonly Acknowledged[];
  /** Topic of every sent event by its content, acknowledged or not. Contents are unique. */
  readonly sent: ReadonlyMap<string, string>;
  /** The subscription to every topic, made before the first event. Undefined if the fault came before it was answered. */
  readonly subscriptionId: string | undefined;
  /** A subscription to one topic that was made later; undefined if there is none. */
  readonly lateSubscriptionId?: string | undefined;
  /** Identifiers of the events that the broker sent to the receiver of `subscriptionId` before the fault. */
  readonly delivered: ReadonlySet<string>;
  /** A retained event. If defined, the two sessions of promised-session.ts were created before the first event. */
  readonly retained?: Acknowledged | undefined;
  /** Hashes of some blocks, as they were before the fault. */
  readonly blockHashes: ReadonlyMap<number, string>;
}
