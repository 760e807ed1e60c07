/**
 * What clients of STOMP disagree about. Each path that serves clients of one kind has a profile; the rest of the gateway asks it and knows no kind of
 * client.
 */
export interface Profile {
  /** Value of `message-id` in a MESSAGE. With `subscription` it is the `id` of its SUBSCRIBE, and clients acknowledge by another header. */
  readonly messageId: "eventId" | "subscription";
  /** Whether an ERROR that concerns one frame ends the connection. One for bytes that are no frame always does. */
  readonly closesOnRefusal: boolean;
  /** Whether SUBSCRIBE and UNSUBSCRIBE without `receipt` get a RECEIPT with their `id`. */
  readonly hasImplicitReceipts: boolean;
  /** Pause between the RECEIPT of a SUBSCRIBE and its first MESSAGE. */
  readonly firstMessageDelayMs: number;
  /** What CONNECTED says in `heart-beat`; 0 for none. */
  readonly heartBeat: {
    /** The broker can send one so often, in milliseconds. */
    readonly sendsMs: number;
    /** It wants one so often. */
    readonly wantsMs: number;
  };
}

export interface ProfileChoices {
  readonly hasImplicitReceipts: boolean;
  readonly heartBeatMs: number;
}

/** Clients that do as the specifications say. */
export function createStandardProfile({ hasImplicitReceipts, heartBeatMs }: ProfileChoices): Profile {
  return {
    messageId: "eventId",
    closesOnRefusal: true, // 1.2, "ERROR"
    hasImplicitReceipts,
    firstMessageDelayMs: 0,
    heartBeat: { sendsMs: heartBeatMs, wantsMs: heartBeatMs },
  };
}
