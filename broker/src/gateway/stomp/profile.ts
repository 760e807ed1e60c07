/**
 * Behaviour on which STOMP clients disagree. Each path that serves one kind of client has a profile; the rest of the gateway depends on the profile
 * alone.
 */
export interface Profile {
  /** Value of `message-id` in a MESSAGE. With `subscription` it is the `id` of the SUBSCRIBE, and before 1.2 clients acknowledge by the header `eventId`. */
  readonly messageId: "eventId" | "subscription";
  /** Whether an ERROR that concerns one frame ends the connection. An ERROR for bytes that are not a frame always does. */
  readonly closesOnRefusal: boolean;
  /** Whether SUBSCRIBE and UNSUBSCRIBE without `receipt` get a RECEIPT with their `id`. */
  readonly hasImplicitReceipts: boolean;
  /** Pause between the RECEIPT of a SUBSCRIBE and its first MESSAGE. */
  readonly firstMessageDelayMs: number;
  /** The `heart-beat` of CONNECTED; 0 for none. */
  readonly heartBeat: {
    /** Interval at which the broker can send heart-beats, in milliseconds. */
    readonly sendsMs: number;
    /** Interval at which the broker wants heart-beats, in milliseconds. */
    readonly wantsMs: number;
  };
}

export interface ProfileChoices {
  readonly hasImplicitReceipts: boolean;
  readonly heartBeatMs: number;
}

/** The profile of clients that follow the specifications. */
export function createStandardProfile({ hasImplicitReceipts, heartBeatMs }: ProfileChoices): Profile {
  return {
    messageId: "eventId",
    closesOnRefusal: true, // 1.2, "ERROR"
    hasImplicitReceipts,
    firstMessageDelayMs: 0,
    heartBeat: { sendsMs: heartBeatMs, wantsMs: heartBeatMs },
  };
}
