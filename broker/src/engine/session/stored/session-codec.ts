import { DeliveryWindow, type InFlight, isOutsideStream } from "../../../domain/delivery-window.ts";
import { fromStored, maxOf, minOf, type Position, positionZero } from "../../../domain/position.ts";
import type { QoS } from "../../../domain/session-filter.ts";
import type { TopicFilter } from "../../../domain/topic-filter.ts";
import type { TopicName } from "../../../domain/topic-name.ts";
import type { SessionClaim, SessionGranted, StoredSession } from "../../../ports/session-store.ts";
import type { WillRequest } from "../../broker.ts";
import type { PendingRetained } from "../retained/retained.ts";

// Encodes the values that the store keeps as bytes. The store checks that the bytes have not changed.

/** Numbers per entry of an encoded window: ticket, position, index of its topic, QoS, marks, and index of its share among the topics, or -1. */
const numbersPerEntry = 6;

const receivedMark = 1;
const retainedMark = 2;

interface Encoded {
  readonly lastTicket: number;
  readonly topics: readonly string[];
  readonly entries: readonly number[];
  readonly retained: readonly PendingRetained[];
  /** Rejected tickets, each followed by the number of its rejections. Absent in rows of earlier versions. */
  readonly rejections?: readonly number[];
  readonly isSuspended?: boolean;
}

/** The deliveries that a session has in progress. */
export interface SessionProgress {
  readonly window: DeliveryWindow;
  /** The retained events that the session's filters have not got yet. */
  readonly retained: readonly PendingRetained[];
  /** Whether the session gets no events, because its client rejected one too often. */
  readonly isSuspended: boolean;
}

export function encodeProgress({ window, retained, isSuspended }: SessionProgress): Uint8Array {
  const topics = new Map<string, number>();
  const entries: number[] = [];
  const rejections: number[] = [];
  for (const { ticket, position, topic, qos, state, isRetained, share, rejections: count } of window.entries) {
    if (share !== undefined && qos === 1) continue; // The share takes the event back when the connection ends.
    if (count !== undefined) rejections.push(ticket, count);
    const index = indexOf(topics, topic);
    const marks = (state === "received" ? receivedMark : 0) | (isRetained === true ? retainedMark : 0);
    entries.push(ticket, position, index, qos, marks, share === undefined ? -1 : indexOf(topics, share));
  }
  const encoded: Encoded = { lastTicket: window.lastTicket, topics: [...topics.keys()], entries, retained };
  const isRejecting = isSuspended || rejections.length > 0;
  return toBytes(isRejecting ? { ...encoded, rejections, isSuspended } : encoded);
}

export function decodeProgress(bytes: Uint8Array): SessionProgress {
  if (bytes.length === 0) return noProgress();
  const encoded = fromBytes(bytes) as Encoded; // This file wrote it.
  const { lastTicket, topics, entries, retained, isSuspended = false } = encoded;
  const rejections = toCounts(encoded.rejections ?? []);
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
      rejections: rejections.get(ticket),
    });
  }
  return { window: DeliveryWindow.from(found, lastTicket), retained, isSuspended };
}

/** See `SessionState.outside`. */
export function outsideOf({ window, retained }: Pick<SessionProgress, "window" | "retained">): Position {
  let last = positionZero;
  for (const entry of window.entries) if (isOutsideStream(entry)) last = maxOf(last, entry.position);
  return retained.reduce((highest, { upTo }) => maxOf(highest, upTo), last);
}

/** The state of a new session. */
function noProgress(): SessionProgress {
  return { window: new DeliveryWindow(), retained: [], isSuspended: false };
}

function toCounts(pairs: readonly number[]): ReadonlyMap<number, number> {
  const counts = new Map<number, number>();
  for (let index = 0; index < pairs.length; index += 2) counts.set(pairs[index] ?? 0, pairs[index + 1] ?? 0);
  return counts;
}

function indexOf(texts: Map<string, number>, text: string): number {
  const index = texts.get(text) ?? texts.size;
  texts.set(text, index);
  return index;
}

/** A will as the store keeps it. */
export interface StoredWill extends WillRequest {
  /** Identifies the will: each connection of the session has another one. Absent in rows of earlier versions. */
  readonly id?: string | undefined;
}

export function encodeWill(will: StoredWill): Uint8Array {
  return toBytes({ ...will, call: { ...will.call, content: Buffer.from(will.call.content).toString("base64") } });
}

export function decodeWill(bytes: Uint8Array): StoredWill {
  const { call, ...will } = fromBytes(bytes) as StoredWill; // Written by encodeWill, so the content is text.
  const content = new Uint8Array(Buffer.from(String(call.content), "base64"));
  return { ...will, expiresAfterMs: will.expiresAfterMs, call: { ...call, groupId: call.groupId, content } };
}

function toBytes(value: object): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}

function fromBytes(bytes: Uint8Array): unknown {
  return JSON.parse(Buffer.from(bytes).toString());
}

/** The deliveries of a claimed session, without events that a reorg has removed. */
export function resumeProgress(claimed: SessionGranted): SessionProgress {
  if (claimed.status !== "resumed") return noProgress();
  const { inFlight, taken, outside } = claimed.current.session;
  const { window, retained, isSuspended } = decodeProgress(inFlight);
  window.rollBack(taken, outside);
  return { window, retained: retained.map((one) => ({ ...one, upTo: minOf(one.upTo, outside) })), isSuspended };
}

/** The row of a claimed session; undefined if it has none. */
export function storedOf(claimed: SessionGranted): StoredSession | undefined {
  return claimed.status === "resumed" ? claimed.current.session : claimed.current;
}

/** When a claimed session began, and who owns it. */
export function beginningOf(claimed: SessionGranted, { now, owner, principal: ownedBy }: SessionClaim) {
  return { createdAt: storedOf(claimed)?.createdAt ?? now, owner, ownedBy };
}
