/** An event that was acknowledged. */
export interface Acknowledged {
  readonly topic: string;
  readonly eventId: string;
  readonly content: string;
}

/** What clients knew before a fault. After the fault, tests compare the broker's answers with it. */
export interface Promised {
  readonly topics: readonly string[];
  readonly events: readonly Acknowledged[];
  /** The topic of every event that was sent, acknowledged or not, by its content. Contents are unique. */
  readonly sent: ReadonlyMap<string, string>;
  /** The subscription to every topic, made before the first event. Undefined if the fault came before the broker answered the subscribe call. */
  readonly subscriptionId: string | undefined;
  /** A subscription to one topic that was made later; undefined if there is none. */
  readonly lateSubscriptionId?: string | undefined;
  /** Identifiers of the events that the broker sent to the receiver of `subscriptionId` before the fault. */
  readonly delivered: ReadonlySet<string>;
  /** A retained event. If defined, the two sessions of promised-session.ts were created before the first event. */
  readonly retained?: Acknowledged | undefined;
  /** Hashes of some blocks before the fault, by block number. */
  readonly blockHashes: ReadonlyMap<number, string>;
}
