import { expect, it, onTestFinished } from "vitest";
import { positionZero } from "../../../domain/position.ts";
import type { QoS } from "../../../domain/session-filter.ts";
import { parseTopicFilter } from "../../../domain/topic-filter.ts";
import type { SettledEvent } from "../../../ports/session-store.ts";
import type { ShareTake } from "../../../ports/share-store.ts";
import { createMemoryStore } from "../../../store/memory/memory-store.ts";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { TestEngine } from "../../testing/test-engine.ts";
import { withSessionCalls } from "../../testing/with-session-calls.ts";

const kept = { expiryMs: 600_000, isRegular: true };

/** An engine whose store calls `onTaken` once it has recorded a take. Collects the takes and the settled events. */
async function startEngine() {
  const memory = createMemoryStore();
  const takes: ShareTake[] = [];
  const settled: SettledEvent[] = [];
  const hooks = { onTaken: (): void => {} };
  const store = withSessionCalls(memory, {
    takeShared: async (take) => {
      const outcome = await memory.shares.takeShared(take);
      takes.push(take);
      hooks.onTaken();
      return outcome;
    },
    saveSessions: (rows, how) => {
      settled.push(...rows.flatMap((row) => row.settled ?? []));
      return memory.sessions.saveSessions(rows, how);
    },
  });
  const engine = await TestEngine.start({ store });
  onTestFinished(() => engine.stop());
  await engine.broker.open({ topic: "a", groupId: undefined });
  return { engine, memory, takes, settled, hooks };
}

/** Attaches a client as a member of the share `$share/s/a`. */
async function attachMember(engine: TestEngine, key: string, qos: QoS) {
  const peer = new RecordingPeer();
  const request = { groupId: undefined, protocol: "MQTT", isClean: false, will: undefined, windowMax: 10 } as const;
  const attached = engine.broker.attach({ ...request, key, expiryMs: 600_000, onConnected: () => {} }, peer);
  const [attachment] = await Promise.all([attached, engine.clock.settle()]);
  const options = { qos, isNoLocal: false, isRetainAsPublished: false, identifier: undefined };
  await attachment.subscribe([{ ...options, filter: parseTopicFilter("$share/s/a") }]);
  await engine.clock.settle();
  return { peer, attachment };
}

/** Attaches two members, and publishes an event that the first one gets with QoS 1. The second one would get it with QoS 0. */
async function startWithEvent() {
  const parts = await startEngine();
  const { engine } = parts;
  const first = await attachMember(engine, "first", 1);
  const second = await attachMember(engine, "second", 0);
  await engine.publish("a", "1");
  await engine.clock.settle();
  expect([first.peer.sequences, second.peer.sequences]).toEqual([[1], []]);
  return { ...parts, first, second };
}

it("gives a returned event to another member if the connection of a member with QoS 0 ends while the store records the take", async () => {
  const { engine, hooks, first, second } = await startWithEvent();
  hooks.onTaken = () => second.attachment.detach(kept);
  first.attachment.detach(kept);
  await engine.clock.advance(1_000);
  expect(second.peer.sequences).toEqual([]);
  hooks.onTaken = () => {};
  const third = await attachMember(engine, "third", 0);
  await engine.clock.advance(1_000);
  expect(third.peer.sequences).toEqual([1]);
});

it("gives a returned event to a member with QoS 0 if the reply of the store was lost after the take", async () => {
  const { engine, hooks, first, second } = await startWithEvent();
  hooks.onTaken = () => {
    hooks.onTaken = () => {};
    throw new Error("the connection broke after the commit");
  };
  first.attachment.detach(kept);
  await engine.clock.advance(10_000);
  expect(second.peer.sequences).toEqual([1]);
});

it("keeps a returned event in the store until a member with QoS 0 has it, and no longer", async () => {
  const { engine, memory, takes, first, second } = await startWithEvent();
  first.attachment.detach(kept);
  await engine.clock.settle();
  expect(second.peer.sequences).toEqual([1]);
  const [{ id, gifts } = { id: undefined, gifts: [] }] = takes.slice(-1);
  if (id === undefined) throw new Error("there was no take");
  expect(gifts).toHaveLength(1);
  await engine.clock.advance(1_000); // The session is written.
  await memory.shares.returnShared({ id, gifts });
  expect(await memory.shares.listReturned(id, { after: positionZero, atMost: 1 })).toEqual([]);
});

it("does not store new events for a member with QoS 0", async () => {
  const { engine, takes, settled } = await startEngine();
  const { peer } = await attachMember(engine, "only", 0);
  await engine.publishMany("a", 3);
  await engine.clock.advance(1_000);
  expect(peer.sequences).toEqual([1, 2, 3]);
  expect([...takes.flatMap(({ gifts }) => gifts), ...settled]).toEqual([]);
});
