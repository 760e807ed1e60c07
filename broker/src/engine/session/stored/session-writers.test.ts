import { afterEach, expect, it } from "vitest";
import { parseGroupId } from "../../../domain/group-id.ts";
import { parseTopicFilter } from "../../../domain/topic-filter.ts";
import { MemoryChain } from "../../../ledger/memory/memory-chain.ts";
import { createMemoryLedger } from "../../../ledger/memory/memory-ledger.ts";
import { createDeferred } from "../../../lib/deferred.ts";
import { silentLogger } from "../../../lib/logger.ts";
import { noMetrics } from "../../../ports/metrics.ts";
import { VirtualClock } from "../../../ports/testing/virtual-clock.ts";
import { createMemoryStore } from "../../../store/memory/memory-store.ts";
import { createBroker } from "../../create-broker.ts";
import { defaultEngineLimits } from "../../limits.ts";
import { asCaller, type CalledBroker } from "../../testing/as-caller.ts";
import { publish } from "../../testing/publish.ts";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { RecordingSink } from "../../testing/recording-sink.ts";
import { withSessionCalls } from "../../testing/with-session-calls.ts";

const clock = new VirtualClock();
const memory = createMemoryStore();
let broker: CalledBroker;
/** Resolves when a rollback of group 1 frees its sessions. */
const freed = createDeferred<void>();

afterEach(async () => {
  freed.resolve();
  await Promise.all([broker.stop(1_000), clock.advance(5_000)]);
});

async function subscribe(groupId: string): Promise<RecordingPeer> {
  const peer = new RecordingPeer();
  const request = { groupId, protocol: "MQTT", key: "c", isClean: false, windowMax: 10, will: undefined } as const;
  const attached = broker.attach({ ...request, expiryMs: 60_000, onConnected: () => {} }, peer);
  const [{ subscribe: add }] = await Promise.all([attached, clock.settle()]);
  const filter = { filter: parseTopicFilter("a"), qos: 2, isNoLocal: false, isRetainAsPublished: false } as const;
  await Promise.all([add([{ ...filter, identifier: undefined }]), clock.settle()]);
  return peer;
}

it("delivers QoS 2 of one group while a rollback of another group locks the sessions of that group", async () => {
  const locked = new Set<string>();
  const saveSessions: typeof memory.sessions.saveSessions = async (rows, options) => {
    if (rows.some(({ id }) => locked.has(id))) await freed.promise;
    return memory.sessions.saveSessions(rows, options);
  };
  let uuids = 0;
  const running = createBroker({
    ledgers: ["1", "2"].map((id) =>
      createMemoryLedger({ groupId: parseGroupId(id), chain: new MemoryChain({ clock }), isFinal: true }),
    ),
    store: withSessionCalls(memory, { saveSessions }),
    sink: new RecordingSink(),
    clock,
    randomness: {
      fraction: () => 0,
      bytes: (count) => new Uint8Array(count),
      uuid: () => `00000000-0000-4000-8000-${String((uuids += 1)).padStart(12, "0")}`,
    },
    metrics: noMetrics,
    logger: silentLogger,
    limits: defaultEngineLimits,
    defaultGroupId: parseGroupId("1"),
    extensionPrefix: "svc-",
    hasCoordinator: true,
  });
  broker = asCaller(running);
  await Promise.all([broker.start(), clock.advance(defaultEngineLimits.startWaitMs)]);
  for (const groupId of ["1", "2"]) await broker.open({ topic: "a", groupId });
  const [first, second] = [await subscribe("1"), await subscribe("2")];
  for (const { session } of await memory.sessions.listSessions({ after: undefined, limit: 9 })) {
    if (session.groupId === "1") locked.add(session.id);
  }
  const extensions = [["svc-qos", "2"]] as const;
  for (const groupId of ["1", "2"]) {
    await publish(broker, { topic: "a", groupId, content: new Uint8Array([1]), extensions });
  }
  await clock.advance(1_000);
  expect([first.sequences, second.sequences]).toEqual([[], [1]]);
});
