/** What an operator chooses for every STOMP connection. */
export interface StompSettings {
  /** Prefix of every extension key. */
  readonly extensionPrefix: string;
  /** Whether a SEND opens its topic. */
  readonly opensTopics: boolean;
  /** Longest body of a SEND, in bytes. */
  readonly bodyBytesMax: number;
  /** Maximum number of subscriptions of one connection. */
  readonly subscriptionsMax: number;
  /** How long a durable subscription outlasts its connection, in seconds. */
  readonly subscriptionExpirySeconds: number;
  /** How long a client may take to send its CONNECT. */
  readonly connectTimeoutMs: number;
  /** Interval in milliseconds at which the broker can send heart-beats, and at which it wants them; 0 for none. */
  readonly heartBeatMs: number;
  /** Whether SUBSCRIBE and UNSUBSCRIBE without `receipt` get a RECEIPT with their `id`. */
  readonly hasImplicitReceipts: boolean;
}
