/** One line of the audit log. It holds no secrets. Undefined fields are not written. */
export interface AuditLine {
  /** Milliseconds since the epoch, UTC. */
  readonly time: number;
  /** The operation, such as `open` or `log in`. */
  readonly action: string;
  /**
   * `begun`: an order of an operator, before it changes anything; `done` or `failed` follows unless the broker dies. An `open` or `close` of a topic is
   * also `failed` if its outcome is unknown. `left out` stands for lines that were not written; `count` is their number.
   */
  readonly outcome: "begun" | "done" | "failed" | "refused" | "left out";
  /**
   * `tenant/name`, or the name alone without a tenant; `anonymous` for a caller without a credential. Undefined if the broker rejected the credential. For
   * `key create`, the principal of the new key.
   */
  readonly principal?: string | undefined;
  readonly tenant?: string | undefined;
  /** Identifier of the caller's key; for `key create` and `key revoke`, of that key. The identifier is not a secret. */
  readonly keyId?: string | undefined;
  readonly address?: string | undefined;
  readonly protocol?: string | undefined;
  readonly groupId?: string | undefined;
  /** A topic or a filter by its real name, which includes the prefix of the tenant if there is one. For a stream, its filters, separated by spaces. */
  readonly topic?: string | undefined;
  /** Receiver of a callback: scheme, host and port. */
  readonly receiver?: string | undefined;
  readonly subscriptionId?: string | undefined;
  readonly sessionId?: string | undefined;
  readonly eventId?: string | undefined;
  readonly role?: string | undefined;
  /** Rules of a role, as JSON. */
  readonly rules?: string | undefined;
  /** For `replay`, where delivery starts again; for `skip`, the last event that is skipped. */
  readonly place?: string | undefined;
  /** Fields that an order changes, without their values. */
  readonly changed?: string | undefined;
  /** Number of events that an order skipped, repeated or found waiting, or of dead letters that it removed. */
  readonly events?: number | undefined;
  /** Number of waiting events that the new filter of a subscription does not match, so that they are never delivered. */
  readonly unmatched?: number | undefined;
  /** Error code of the refusal or failure. */
  readonly code?: number | undefined;
  readonly reason?: string | undefined;
  readonly count?: number | undefined;
}

/** Where audit lines go. */
export interface AuditLog {
  /** Never throws, and waits for no reader. Lines that cannot be written at once wait in memory, up to a bound; the log drops further ones, and counts them. */
  write(line: AuditLine): void;
  /** Why lines are missing or late; undefined while all are written, or late for a few seconds only. */
  findTrouble(): string | undefined;
}
