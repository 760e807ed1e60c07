import { afterEach, beforeEach, expect, it } from "vitest";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import { createDeferred } from "../../lib/deferred.ts";
import type { Caller } from "../access/caller.ts";
import { allowAll, type Policy } from "../access/policy.ts";
import type { Attachment, StreamRequest } from "../broker.ts";
import { testCaller } from "../testing/as-caller.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestEngine } from "../testing/test-engine.ts";

const texts = Array.from({ length: 100 }, (_, index) => `a/${index}`);
const how = { qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
const filters = texts.map((text) => ({ ...how, filter: parseTopicFilter(text) }));

/** Each check of a right to subscribe to a filter, or to unsubscribe from it, takes 1 ms. */
let engine: TestEngine;
/** The number of checks in each turn of the event loop. */
let turns: number[];
let onCheck: () => void;

beforeEach(async () => {
  [turns, onCheck] = [[0], () => {}];
  let checks = 0;
  const allows: Policy["allows"] = (_caller, action, { topic }) => {
    if (action !== "subscribe" && !(action === "unsubscribe" && topic !== undefined)) return true;
    checks += 1;
    turns.push((turns.pop() ?? 0) + 1);
    onCheck();
    return true;
  };
  engine = await TestEngine.start({ policy: { ...allowAll, allows } });
  const monotonic = engine.clock.monotonic.bind(engine.clock);
  engine.clock.monotonic = () => monotonic() + checks;
  engine.clock.soon = (action) => {
    setImmediate(() => {
      turns.push(0);
      action();
    });
  };
});
afterEach(() => engine.stop());

const key = "5e1e0000-0000-4000-8000-00000000000a";
const stream: StreamRequest = { filters: texts, acknowledges: true, offset: undefined };

/** Attaches a session that outlasts its connection. */
function attach(caller: Caller = testCaller, asked?: StreamRequest): Promise<Attachment> {
  const protocol = asked === undefined ? "MQTT" : "STOMP";
  const request = { groupId: undefined, protocol, key, isClean: false, windowMax: 10, stream: asked } as const;
  const rest = { will: undefined, expiryMs: 60_000, onConnected: () => {} };
  return engine.running.calls.attach(caller, { ...request, ...rest }, new RecordingPeer());
}

it("checks the rights to many filters of one subscribe in slices, and adds all filters in one turn", async () => {
  const counts: number[] = [];
  const { session, subscribe } = await attach();
  onCheck = () => void counts.push(session.filterCount);
  expect(await subscribe(filters)).toEqual(filters.map(() => true));
  expect(counts).toEqual(filters.map(() => 0));
  expect(session.filterCount).toBe(filters.length);
  expect(Math.max(...turns)).toBeLessThan(10);
});

it("checks the rights to many filters of a stream in slices", async () => {
  const { session } = await attach(testCaller, stream);
  expect(session.filterCount).toBe(texts.length);
  expect(Math.max(...turns)).toBeLessThan(10);
});

it("checks the rights to many filters of a tail in slices", async () => {
  const call = { groupId: undefined, filters: texts, after: undefined, lastEventId: undefined, onConnected: () => {} };
  await engine.running.calls.tail(testCaller, call, new RecordingPeer());
  expect(turns.reduce((sum, count) => sum + count)).toBeGreaterThanOrEqual(texts.length);
  expect(Math.max(...turns)).toBeLessThan(10);
});

it.each([true, false])(
  "checks the rights to many filters of a stream in slices when unSubscribe ends it, connected: %s",
  async (isConnected) => {
    const { detach } = await attach(testCaller, stream);
    if (!isConnected) detach({ expiryMs: 60_000, isRegular: true });
    await engine.clock.settle();
    turns = [0];
    await engine.broker.unSubscribe({ subscriptionId: key });
    expect(turns.reduce((sum, count) => sum + count)).toBe(texts.length);
    expect(Math.max(...turns)).toBeLessThan(10);
    expect(await engine.listSubscriptions()).toEqual([]);
  },
);

it.each<[string, (attachment: Attachment) => unknown]>([
  ["ends", ({ detach }) => detach({ expiryMs: 60_000, isRegular: true })],
  ["is replaced", () => attach()],
])("checks no further filter, and adds none, if the connection %s between two slices", async (_, leave) => {
  const left = new AbortController();
  const attachment = await attach({ ...testCaller, signal: left.signal });
  let checks = 0;
  onCheck = () => {
    if ((checks += 1) !== 20) return;
    left.abort(); // as a gateway does
    void leave(attachment);
  };
  await expect(attachment.subscribe(filters)).rejects.toMatchObject({ code: 200_300 });
  expect(checks).toBe(20);
  const { isPresent, session } = await attach();
  expect([isPresent, session.filterCount]).toEqual([true, 0]);
});

it("begins no change if the broker stops between two slices", async () => {
  const { subscribe } = await attach();
  const begun = createDeferred<void>();
  const held: (() => void)[] = [];
  onCheck = () => {
    engine.clock.soon = (action) => void held.push(action);
    begun.resolve();
  };
  const subscribed = Promise.allSettled([subscribe(filters)]);
  await begun.promise;
  await engine.stop();
  [onCheck, engine.clock.soon] = [() => {}, (action) => void setImmediate(action)];
  for (const action of held) action();
  expect(await subscribed).toMatchObject([{ reason: { code: 200_300 } }]);
  expect(await engine.store.sessions.listSessions({ after: undefined, limit: 9 })).toMatchObject([{ filters: [] }]);
});
