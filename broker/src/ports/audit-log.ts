/** One line of the audit log. It holds no secrets. Undefined fields are not written. */
export interface AuditLine {
  /** Milliseconds since the epoch, UTC. */
  readonly time: number;
  /** The operation, such as `open` or `log in`. */
  readonly action: string;
  /**
   * `begun`: an order of an operator, before it changes anything; `done` or `failed` follows unless the broker dies. `failed` also for a change of a topic
   * whose outcome is unknown. `left out` stands for lines that were not written; `count` is their number.
   */
  readonly outcome: "begun" | "done" | "failed" | "refused" | "left out";
  /** `tenant/name`; `anonymous` for a caller without a credential. Undefined if the caller is unknown. */
  readonly principal?: string | undefined;
  readonly tenant?: string | undefined;
  /** The identifier of the key, which is no secret. */
  readonly keyId?: string | undefined;
  readonly address?: string | undefined;
  readonly protocol?: string | undefined;
  readonly groupId?: string | undefined;
  /** A topic or a filter, as the client wrote it. */
  readonly topic?: string | undefined;
  /** Receiver of a callback: scheme, host and port. */
  readonly receiver?: string | undefined;
  readonly subscriptionId?: string | undefined;
  readonly sessionId?: string | undefined;
  readonly eventId?: string | undefined;
  readonly role?: string | undefined;
  /** Rules of a role, as JSON. */
  readonly rules?: string | undefined;
  /** Where an order moves a subscription. */
  readonly place?: string | undefined;
  /** Fields that an order changes, without their values. */
  readonly changed?: string | undefined;
  /** Number of events that an order concerned. */
  readonly events?: number | undefined;
  /** Number of waiting events that the new topic of a subscription does not match. */
  readonly unmatched?: number | undefined;
  /** Error code of the refusal or failure. */
  readonly code?: number | undefined;
  readonly reason?: string | undefined;
  readonly count?: number | undefined;
}

/** Where audit lines go. */
export interface AuditLog {
  /** Never throws and never waits. Counts and drops lines that cannot be written soon. */
  write(line: AuditLine): void;
  /** Why lines are missing or late; undefined while all are written, or late for a few seconds only. */
  findTrouble(): string | undefined;
}
