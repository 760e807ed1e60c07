import { setImmediate } from "node:timers/promises";
import { afterEach, expect, test, vi } from "vitest";
import { endOfBlock, toPosition } from "../../domain/position.ts";
import type { OriginSource } from "../../engine/broker.ts";
import type { Delivery } from "../../engine/session/peer.ts";
import { closeGraceMs } from "../shared/connection/limits.ts";
import { UnreadBytes } from "../shared/connection/memory.ts";
import { StalledSocket } from "../testing/stalled-socket.ts";
import { ContentFilter } from "./content-filter.ts";
import { Encodings } from "./encodings.ts";
import { Tail, type TailEnd } from "./tail.ts";
import type { TailRequest } from "./tail-request.ts";

afterEach(() => void vi.useRealTimers());

/** The event of block 5. */
const event = { topic: "a", content: Buffer.from("{}"), extensions: [], sequence: 1, blockNumber: 5 };
const delivery = { event: { ...event, position: toPosition(5, 0) }, eventId: "2cf24dba-1-5" } as unknown as Delivery; // A tail reads no other field.

/** A tail that has begun. Its client reads everything. */
function begin(request: Partial<TailRequest>, load: OriginSource["load"] = () => Promise.reject(new Error("unused"))) {
  const socket = new StalledSocket();
  socket.startReading();
  const ends: (TailEnd | undefined)[] = [];
  const named = { groupId: undefined, topics: ["a"], after: undefined, lastEventId: undefined, filter: undefined };
  const tail = new Tail(socket, {
    request: { ...named, framing: "sse", format: "interface", ...request },
    encodings: new Encodings({ extensionPrefix: "svc-", cloudEventType: "t" }),
    unread: new UnreadBytes(),
    retryMs: 1_000,
    onEnded: (_, why) => void ends.push(why),
  });
  const start = { id: "@4", position: endOfBlock(4), isRolledBack: false };
  tail.begin({ isStuck: false, wake: () => {} }, start, { find: () => undefined, load });
  const sent = async (): Promise<string> => {
    await setImmediate();
    return Buffer.concat(socket.received).toString();
  };
  return { tail, socket, ends, sent };
}

test("a tail ends if the origin of an event cannot be loaded, so that its client reconnects", async () => {
  const { tail, ends, sent } = begin({ format: "cloudevents" }, () => Promise.reject(new Error("no store")));
  tail.deliver(delivery);
  expect(await sent()).toContain('event: end\ndata: {"reason":"failed"}');
  expect(ends).toEqual(["failed"]);
});

test("a heartbeat has the id of an event that the filter left out, unless a rollback has removed the event", async () => {
  const [kept, removed] = [1, 2].map(() => begin({ filter: ContentFilter.parse("$.a == 1") }));
  for (const one of [kept, removed]) one?.tail.deliver(delivery);
  removed?.tail.rolledBack(endOfBlock(3), 1);
  for (const one of [kept, removed]) one?.tail.beat();
  expect(await kept?.sent()).toMatch(/\n\nid: 2cf24dba-1-5\n\n$/);
  expect(await removed?.sent()).toMatch(/event: resync\ndata: {"after":"@3","id":"@3.1"}\n\n:\n\n$/);
});

test("a tail that has ended closes its connection after closeGraceMs, even if the client keeps its side open", async () => {
  const { tail, socket } = begin({});
  vi.useFakeTimers({ toFake: ["setTimeout"] });
  tail.end("stopping");
  expect([socket.writableEnded, socket.destroyed]).toEqual([true, false]);
  vi.advanceTimersByTime(closeGraceMs);
  expect(socket.destroyed).toBe(true);
});
