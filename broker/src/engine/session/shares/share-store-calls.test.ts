import { expect, it } from "vitest";
import { parseTopicFilter } from "../../../domain/topic-filter.ts";
import { createDeferred } from "../../../lib/deferred.ts";
import { createMemoryStore } from "../../../store/memory/memory-store.ts";
import type { Attachment } from "../../broker.ts";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { TestEngine } from "../../testing/test-engine.ts";
import { withSessionCalls } from "../../testing/with-session-calls.ts";
import { storeTurnsMax } from "../stored/store-turns.ts";

/** Attaches a client, and subscribes it to the filters. */
async function attach(engine: TestEngine, key: string, filters: readonly string[]) {
  const peer = new RecordingPeer();
  const request = {
    groupId: undefined,
    protocol: "MQTT",
    key,
    isClean: false,
    windowMax: 99,
    will: undefined,
  } as const;
  const attached = engine.broker.attach({ ...request, expiryMs: 60_000, onConnected: () => {} }, peer);
  const [attachment] = await Promise.all([attached, engine.clock.settle()]);
  const options = { qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
  const subscribed = attachment.subscribe(filters.map((text) => ({ ...options, filter: parseTopicFilter(text) })));
  await Promise.all([subscribed, engine.clock.settle()]);
  return { peer, attachment };
}

it("searches for returned events when the connection of a member ends, and not when the connection of another client ends", async () => {
  const memory = createMemoryStore();
  let searches = 0;
  const findReturning: typeof memory.shares.findReturning = async (ids) => {
    searches += 1;
    return memory.shares.findReturning(ids);
  };
  const engine = await TestEngine.start({ store: withSessionCalls(memory, { findReturning }) });
  await engine.broker.open({ topic: "a", groupId: undefined });
  const leave = async ({ attachment }: { readonly attachment: Attachment }): Promise<void> => {
    attachment.detach({ expiryMs: 60_000, isRegular: true });
    await engine.clock.settle();
  };
  await attach(engine, "member", ["$share/s/a"]);
  await attach(engine, "remaining member", ["$share/s/a"]);
  const leaving = await attach(engine, "leaving member", ["$share/s/a"]);
  await leave(await attach(engine, "other", ["a"]));
  await attach(engine, "other", ["a"]);
  await leave(await attach(engine, "other", ["a"])); // takes the session over
  expect(searches).toBe(0);
  await leave(leaving);
  expect(searches).toBe(1);
  await attach(engine, "member", ["$share/s/a"]); // takes the session over
  expect(searches).toBe(2);
  await engine.stop();
});

it.each(["findShare", "listReturned", "takeShared"] as const)(
  "calls the store for at most five shares of a group at once, however many a client is a member of: %s",
  async (slow) => {
    const memory = createMemoryStore();
    const { shares } = memory;
    const gate = createDeferred<void>();
    let begun = 0;
    const run = async <T>(name: typeof slow, call: () => Promise<T>): Promise<T> => {
      if (name !== slow) return call();
      begun += 1;
      await gate.promise;
      return call();
    };
    const store = withSessionCalls(memory, {
      findShare: (...call) => run("findShare", () => shares.findShare(...call)),
      listReturned: (...call) => run("listReturned", () => shares.listReturned(...call)),
      takeShared: (...call) => run("takeShared", () => shares.takeShared(...call)),
    });
    const engine = await TestEngine.start({ store });
    await engine.broker.open({ topic: "a", groupId: undefined });
    const filters = Array.from({ length: 20 }, (_, index) => `$share/s${index}/a`);
    const { peer } = await attach(engine, "member of many", filters);
    await engine.publish("a", "1");
    await engine.clock.settle();
    expect(begun).toBe(storeTurnsMax);
    gate.resolve();
    await engine.clock.settle();
    expect(peer.sequences).toEqual(filters.map(() => 1));
    await engine.stop();
  },
);

it("delivers the events of a share while the store hangs in reads for a client that connects as a member of many", async () => {
  const memory = createMemoryStore();
  const gate = createDeferred<void>();
  let isSlow = false;
  const findShare: typeof memory.shares.findShare = async (...call) => {
    if (isSlow) await gate.promise;
    return memory.shares.findShare(...call);
  };
  const engine = await TestEngine.start({ store: withSessionCalls(memory, { findShare }) });
  await engine.broker.open({ topic: "a", groupId: undefined });
  const { peer } = await attach(engine, "member", ["$share/s/a"]);
  isSlow = true;
  await attach(
    engine,
    "member of many",
    Array.from({ length: 20 }, (_, index) => `$share/s${index}/b`),
  );
  await engine.publish("a", "1");
  await engine.clock.settle();
  expect(peer.sequences).toEqual([1]);
  gate.resolve();
  await engine.stop();
});
