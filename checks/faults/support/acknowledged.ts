/** An event that was acknowledged. */
export interface Acknowledged {
  readonly topic: string;
  readonly eventId: string;
  readonly content: string;
}

/** What clients were answered before the fault: whoever asks afterwards has to find it. */
export interface Promised {
  readonly topics: readonly string[];
  readonly events: readonly Acknowledged[];
  /** Topic by content, of everything that was sent, acknowledged or not; no content was sent twice. */
  readonly sent: ReadonlyMap<string, string>;
  /** To every topic, made before the first event; undefined before it is made. */
  readonly subscriptionId: string | undefined;
  /** Made later; undefined where there is none. */
  readonly lateSubscriptionId?: string | undefined;
  /** The events that the first receiver was sent, in any order. */
  readonly delivered: ReadonlySet<string>;
  /** The event that its topic retains. If defined, the two sessions of promised-session.ts are kept, too, since before the first event. */
  readonly retained?: Acknowledged | undefined;
  /** Hashes of some blocks, as they were before the fault. */
  readonly blockHashes: ReadonlyMap<number, string>;
}
