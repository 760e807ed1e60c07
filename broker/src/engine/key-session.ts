/** A session as the owner of publish keys. */
export interface KeySession {
  readonly id: string;
  /** Of its connection, read when a key is written; undefined if no connection publishes under the key. */
  readonly epoch?: number | undefined;
}

/** A key of a session. */
export interface ReleaseCall {
  readonly groupId: string | undefined;
  readonly session: KeySession;
  readonly key: string;
}
