/** A session as the owner of publish keys. */
export interface KeySession {
  readonly id: string;
  /** Epoch of the session. It may change, so read it again for each key. Undefined for a publish without a connection, such as a will. */
  readonly epoch?: number | undefined;
}

/** Frees one publish key of a session; see Broker.release. */
export interface ReleaseCall {
  readonly groupId: string | undefined;
  readonly session: KeySession;
  readonly key: string;
}
