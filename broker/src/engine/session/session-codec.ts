import { DeliveryWindow, type InFlight } from "../../domain/delivery-window.ts";
import { fromStored, type Position } from "../../domain/position.ts";
import type { QoS } from "../../domain/session-filter.ts";
import type { TopicFilter } from "../../domain/topic-filter.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { SessionClaimed, StoredSession } from "../../ports/session-store.ts";
import { anonymous, type Principal } from "../access/caller.ts";
import type { WillOrder } from "../broker.ts";
import type { PendingRetained } from "./retained.ts";

// What the store keeps as bytes: it checks that they are as they were written.

/** Numbers of one entry in a window's bytes: ticket, position, index of its topic, QoS, marks, and index of its share among the topics, or -1. */
const numbersPerEntry = 6;

const receivedMark = 1;
const retainedMark = 2;

interface Encoded {
  readonly lastTicket: number;
  readonly topics: readonly string[];
  readonly entries: readonly number[];
  readonly retained: readonly PendingRetained[];
}

/** What a session has under way. */
export interface UnderWay {
  readonly window: DeliveryWindow;
  /** What its filters are still to get of what topics retain. */
  readonly retained: readonly PendingRetained[];
}

export function encodeUnderWay({ window, retained }: UnderWay): Uint8Array {
  const topics = new Map<string, number>();
  const entries: number[] = [];
  for (const { ticket, position, topic, qos, state, isRetained, share } of window.entries) {
    const index = indexOf(topics, topic);
    const marks = (state === "received" ? receivedMark : 0) | (isRetained === true ? retainedMark : 0);
    entries.push(ticket, position, index, qos, marks, share === undefined ? -1 : indexOf(topics, share));
  }
  const encoded: Encoded = { lastTicket: window.lastTicket, topics: [...topics.keys()], entries, retained };
  return toBytes(encoded);
}

export function decodeUnderWay(bytes: Uint8Array): UnderWay {
  if (bytes.length === 0) return { window: new DeliveryWindow(), retained: [] };
  const { lastTicket, topics, entries, retained } = fromBytes(bytes) as Encoded; // This file wrote it.
  const found: InFlight[] = [];
  for (let start = 0; start < entries.length; start += numbersPerEntry) {
    const [ticket = 0, position = 0, index = 0, qos = 0, marks = 0, shared = -1] = entries.slice(
      start,
      start + numbersPerEntry,
    );
    const topic = topics[index] as TopicName;
    const state = (marks & receivedMark) !== 0 ? "received" : "given";
    const isRetained = (marks & retainedMark) !== 0;
    found.push({
      ticket,
      position: fromStored(position),
      topic,
      qos: qos as QoS,
      state,
      isRetained,
      share: topics[shared] as TopicFilter | undefined,
    });
  }
  return { window: DeliveryWindow.from(found, lastTicket), retained };
}

function indexOf(texts: Map<string, number>, text: string): number {
  const index = texts.get(text) ?? texts.size;
  texts.set(text, index);
  return index;
}

export function encodeWill(will: WillOrder): Uint8Array {
  return toBytes({ ...will, call: { ...will.call, content: Buffer.from(will.call.content).toString("base64") } });
}

export function decodeWill(bytes: Uint8Array): WillOrder {
  const { call, ...will } = fromBytes(bytes) as WillOrder; // Written above, so that the content is text.
  const content = Uint8Array.from(Buffer.from(String(call.content), "base64"));
  return { ...will, expiresAfterMs: will.expiresAfterMs, call: { ...call, groupId: call.groupId, content } };
}

export function encodePrincipal({ kind }: Principal): string {
  return kind;
}

/** Nobody has to say who they are yet. */
export function decodePrincipal(kind: string): Principal {
  if (kind !== anonymous.kind) throw new Error(`unknown principal ${kind}`);
  return anonymous;
}

function toBytes(value: object): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}

function fromBytes(bytes: Uint8Array): unknown {
  return JSON.parse(Buffer.from(bytes).toString());
}
/** What was in flight beyond the end was taken back by the chain since. What is beside the stream may be ahead of it, up to the end of the index. */
export function takenUp({ inFlight, taken }: StoredSession, indexedUpTo: Position): UnderWay {
  const underWay = decodeUnderWay(inFlight);
  underWay.window.rollBack(taken, indexedUpTo);
  return underWay;
}

/** The row of a claimed session; undefined for one that has none. */
export function storedOf(
  claimed: Exclude<SessionClaimed, { status: "damaged" | "went-back" }>,
): StoredSession | undefined {
  return claimed.status === "resumed" ? claimed.current.session : claimed.current;
}
