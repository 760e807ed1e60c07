import { setImmediate } from "node:timers/promises";
import { expect, it } from "vitest";
import { createDeferred, type Deferred } from "../../lib/deferred.ts";
import { TimeSlices } from "../../lib/time-slices.ts";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import { createMemoryStore } from "../../store/memory/memory-store.ts";
import { publish } from "../testing/publish.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestEngine } from "../testing/test-engine.ts";
import { Outgoing } from "./outgoing.ts";
import type { Delivery } from "./peer.ts";

const KIB = 1024;

it("lets no more than 256 KiB of events wait for the store, since the client then gets all of them at once", async () => {
  const store = createMemoryStore();
  const engine = await TestEngine.start({ store });
  await engine.broker.open({ topic: "a", groupId: undefined });
  const peer = new RecordingPeer();
  const request = { groupId: undefined, protocol: "MQTT" as const, key: "c", isClean: false, will: undefined };
  const attached = engine.broker.attach(
    { ...request, windowMax: 1_000, expiryMs: 60_000, onConnected: () => {} },
    peer,
  );
  const [attachment] = await Promise.all([attached, engine.clock.settle()]);
  const filter = parseTopicFilter("a");
  const wishes = { isNoLocal: false, isRetainAsPublished: false, identifier: undefined };
  await attachment.subscribe([{ filter, qos: 2, ...wishes }]);
  const { sessions } = store;
  const saveSessions = sessions.saveSessions.bind(sessions);
  const gate = createDeferred<void>();
  sessions.saveSessions = async (...call) => {
    await gate.promise;
    return saveSessions(...call);
  };
  const content = new Uint8Array(60 * KIB);
  const extensions = [["svc-qos", "2"]] as const;
  for (let count = 0; count < 20; count += 1) {
    await publish(engine.broker, { topic: "a", groupId: undefined, content, extensions });
  }
  await engine.clock.settle();
  expect(peer.sequences).toEqual([]);
  const deliver = peer.deliver.bind(peer);
  peer.deliver = (delivery) => {
    peer.hasRoom = false; // as a client that does not read
    deliver(delivery);
  };
  gate.resolve();
  await engine.clock.advance(1_000);
  expect(peer.sequences).toEqual([1, 2, 3, 4, 5]);
  peer.hasRoom = true;
  attachment.session.wake();
  await engine.clock.advance(1_000);
  expect(peer.sequences).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  await engine.stop();
});

const delivery = { event: { content: new Uint8Array(), extensions: [] } } as unknown as Delivery; // All that Outgoing reads of it.

it.each(["deliveries", "releases"] as const)(
  "sends in slices the %s that one write of the store frees",
  async (what) => {
    const turns: (() => void)[] = [];
    let sent = 0;
    const slices = new TimeSlices({ monotonic: () => sent / 10, soon: (action) => void turns.push(action) }); // Each takes 0.1 ms.
    const peer = { deliver: () => void (sent += 1), release: () => void (sent += 1) };
    const write = createDeferred<void>();
    for (let sessions = 0; sessions < 200; sessions += 1) {
      const outgoing = new Outgoing({
        peer,
        slices,
        written: () => write.promise,
        onSent: () => {},
        onFailed: () => {},
      });
      for (let ticket = 1; ticket <= 5; ticket += 1) {
        if (what === "deliveries") outgoing.send(delivery, { afterWrite: true });
        else outgoing.release(ticket);
      }
    }
    write.resolve();
    let largest = 0;
    for (let before = 0; before < 1_000; before = sent) {
      await setImmediate(); // Runs all microtasks.
      for (const action of turns.splice(0)) {
        action();
        await setImmediate();
      }
      largest = Math.max(largest, sent - before);
    }
    expect(largest).toBeLessThanOrEqual(100);
  },
);

it("a write frees all deliveries and releases that came before it began, and none that came later", async () => {
  const writes: Deferred<void>[] = [createDeferred<void>()];
  const sent: (string | undefined)[] = [];
  const deliver = ({ eventId }: Delivery): void => void sent.push(eventId);
  const release = (ticket: number): void => void sent.push(`release ${ticket}`);
  const slices = new TimeSlices({ monotonic: () => 0, soon: () => {} });
  let sentBefore: number[] = [];
  const outgoing = new Outgoing({
    peer: { deliver, release },
    slices,
    written: () => writes.at(-1)?.promise,
    onSent: () => void sentBefore.push(sent.length),
    onFailed: () => {},
  });
  const send = (eventId: string, afterWrite = true): void =>
    outgoing.send({ ...delivery, eventId } as Delivery, { afterWrite });
  send("1");
  outgoing.release(7);
  send("2", false);
  await setImmediate();
  send("3");
  writes.push(createDeferred<void>()); // The first write begins.
  send("4");
  for (const ticket of [7, 8]) outgoing.release(ticket);
  await setImmediate();
  expect(sent).toEqual([]);
  writes[0]?.resolve();
  await setImmediate();
  expect(sent).toEqual(["1", "release 7", "2", "3"]);
  expect(sentBefore, "the session may send more").toContain(4);
  sentBefore = [];
  writes[1]?.resolve();
  await setImmediate();
  expect([sent.slice(4), sentBefore]).toEqual([["4", "release 8"], [6]]);
});
