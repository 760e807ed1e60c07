/** An event that was acknowledged. */
export interface Acknowledged {
  readonly topic: string;
  readonly eventId: string;
  readonly content: string;
}

/** What clients knew before the fault. After the fault the broker is compared with it. */
export interface Promised {
  readonly topics: readonly string[];
  readonly events: readonly Acknowledged[];
  /** Topic by content, of everything that was sent, acknowledged or not; no content was sent twice. */
  readonly sent: ReadonlyMap<string, string>;
  /** The subscription to every topic, made before the first event. Undefined if the fault came before it was answered. */
  readonly subscriptionId: string | undefined;
  /** A subscription to one topic that was made later; undefined if there is none. */
  readonly lateSubscriptionId?: string | undefined;
  /** Identifiers of the events that the receiver of `subscriptionId` was sent before the fault. */
  readonly delivered: ReadonlySet<string>;
  /** The event that its topic retains. If defined, the two sessions of promised-session.ts exist since before the first event. */
  readonly retained?: Acknowledged | undefined;
  /** Hashes of some blocks, as they were before the fault. */
  readonly blockHashes: ReadonlyMap<number, string>;
}
