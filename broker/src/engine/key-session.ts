/** A session as the owner of publish keys. */
export interface KeySession {
  readonly id: string;
  /** The epoch of the session's connection. It can change, so it is read when a key is written. Undefined if no connection publishes, as for a will. */
  readonly epoch?: number | undefined;
}

/** Frees one publish key of a session; see Broker.release. */
export interface ReleaseCall {
  readonly groupId: string | undefined;
  readonly session: KeySession;
  readonly key: string;
}
