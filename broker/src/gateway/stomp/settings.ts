/** What an operator chooses for every STOMP connection. */
export interface StompSettings {
  /** What every extension key begins with. */
  readonly extensionPrefix: string;
  /** Whether a SEND opens its topic. */
  readonly opensTopics: boolean;
  /** Longest body of a SEND. */
  readonly bodyBytesMax: number;
  /** Subscriptions of one connection. */
  readonly subscriptionsMax: number;
  /** How long a durable subscription outlasts its connection, in seconds. */
  readonly subscriptionExpirySeconds: number;
  /** How long a connection may take for its CONNECT. */
  readonly connectTimeoutMs: number;
}
