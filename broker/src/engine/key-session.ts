/** A session as the owner of publish keys. */
export interface KeySession {
  readonly id: string;
  /** Epoch of the session, read again for each key that is written, as it may change. Undefined if no connection publishes, as for a will. */
  readonly epoch?: number | undefined;
}

/** Frees one publish key of a session; see Broker.release. */
export interface ReleaseCall {
  readonly groupId: string | undefined;
  readonly session: KeySession;
  readonly key: string;
}
