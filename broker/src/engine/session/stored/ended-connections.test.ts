import { BrokerError } from "@stele/wire";
import { expect, it } from "vitest";
import { parseTopicFilter } from "../../../domain/topic-filter.ts";
import { createDeferred } from "../../../lib/deferred.ts";
import { silentLogger } from "../../../lib/logger.ts";
import { withCalls } from "../../../lib/with-calls.ts";
import type { SessionStore } from "../../../ports/session-store.ts";
import { createMemoryStore } from "../../../store/memory/memory-store.ts";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { TestEngine } from "../../testing/test-engine.ts";
import { withSessionCalls } from "../../testing/with-session-calls.ts";

const count = 100;
const keys = Array.from(
  { length: count },
  (_, number) => `00000000-0000-4000-8000-${String(number).padStart(12, "0")}`,
);
/** Time that a write of one connection's end takes, in milliseconds. The broker writes five ends at a time: all of them take twice as long as a stop may. */
const endMs = 100;

const protocols = ["MQTT", "STOMP"] as const;

it.each(protocols)(
  "a stop keeps the acknowledgements of 100 sessions of %s, even if it has no time to write the ends of their connections",
  async (protocol) => {
    const memory = createMemoryStore();
    const detachSession: SessionStore["detachSession"] = async (...call) => {
      await new Promise<void>((resolve) => void engine.clock.after(endMs, resolve));
      return memory.sessions.detachSession(...call);
    };
    const engine = await TestEngine.start({
      store: withSessionCalls(memory, { detachSession }),
    });
    await engine.broker.open({ topic: "a", groupId: undefined });
    const peers = await Promise.all(keys.map((key) => connect(engine, protocol, key)));
    const call = {
      topic: "a",
      groupId: undefined,
      content: new Uint8Array([1]),
      extensions: [["svc-qos", "1"]] as const,
    };
    engine.broker.submit(call, () => {});
    await engine.clock.settle();
    for (const { peer, session } of peers) session.acknowledge(peer.ticketOf(1));
    await engine.rebuild();
    await engine.broker.start();
    const resumed = await Promise.all(keys.map((key) => connect(engine, protocol, key)));
    await engine.clock.advance(1_000);
    expect(resumed.filter(({ isPresent }) => isPresent)).toHaveLength(count);
    expect(resumed.flatMap(({ peer }) => peer.sequences)).toEqual([]);
    await engine.stop();
  },
);

it("a stop keeps no stream of STOMP that unSubscribe ends meanwhile", async () => {
  const engine = await TestEngine.start();
  const [key = ""] = keys;
  const { peer, attachment } = await connect(engine, "STOMP", key);
  let unsubscribed: Promise<void> | undefined;
  peer.ended = () => {
    attachment.detach({ expiryMs: 60_000, isRegular: true });
    unsubscribed = engine.broker.unSubscribe({ subscriptionId: key });
  };
  await engine.rebuild();
  await unsubscribed;
  await engine.broker.start();
  expect(await engine.store.sessions.listSessions({ after: undefined, limit: 1 })).toEqual([]);
  await engine.stop();
});

it.each([
  ["that its client ends", "remove"],
  ["that unSubscribe ends", "remove"],
  ["whose row is not removed at the first try", "detach"],
])("a stop waits for the end of a stream of STOMP %s before it closes the store", async (how, written) => {
  const memory = createMemoryStore();
  const calls: string[] = [];
  const gate = createDeferred<void>();
  const sessions = withSessionCalls(memory, {
    removeSession: async (...call) => {
      await gate.promise;
      if (written === "detach") throw new BrokerError("storeUnreachable");
      calls.push("remove");
      return memory.sessions.removeSession(...call);
    },
    detachSession: async (...call) => {
      await new Promise<void>((resolve) => void engine.clock.after(endMs, resolve));
      calls.push("detach");
      return memory.sessions.detachSession(...call);
    },
  });
  const stop = async (): Promise<void> => {
    calls.push("stop");
    await memory.stop();
  };
  const engine = await TestEngine.start({ store: withCalls(sessions, { stop }) });
  const [key = ""] = keys;
  const { attachment, peer } = await connect(engine, "STOMP", key);
  peer.ended = () => {}; // As if the gateway had not got the attachment yet.
  const isOther = how === "that unSubscribe ends";
  const ended = isOther ? engine.broker.unSubscribe({ subscriptionId: key }) : attachment.end();
  const settled = Promise.allSettled([ended]);
  await engine.clock.settle();
  const stopped = engine.broker.stop(1_000);
  await engine.clock.settle();
  expect(calls).toEqual([]);
  gate.resolve();
  await engine.clock.advance(endMs);
  await Promise.all([settled, stopped]);
  expect(calls).toEqual([written, "stop"]);
  await engine.stop();
});

it.each<[what: string, expiryMs: number, counts: readonly number[]]>([
  ["does not warn if the row already has its will and expiry", 60_000, []],
  ["warns once if the row lacks them", 1, [1]],
])("a stop without time to write an end %s", async (_, expiryMs, counts) => {
  const memory = createMemoryStore();
  const detachSession: SessionStore["detachSession"] = async () => {
    await new Promise<void>((resolve) => void engine.clock.after(60_000, resolve));
    throw new Error("the store is not started");
  };
  const warnings: unknown[] = [];
  const engine = await TestEngine.start({
    store: withSessionCalls(memory, { detachSession }),
    logger: { ...silentLogger, warn: (__, fields) => void warnings.push(fields?.["count"]) },
  });
  const { attachment } = await connect(engine, "MQTT", "c");
  attachment.detach({ expiryMs, isRegular: true });
  await engine.clock.settle();
  await engine.stop();
  await engine.clock.advance(60_000);
  expect(warnings).toEqual(counts);
});

/** Connects a client, which subscribes if its session is new. */
async function connect(engine: TestEngine, protocol: (typeof protocols)[number], key: string) {
  const peer = new RecordingPeer();
  const request = { groupId: undefined, protocol, key, isClean: false, windowMax: 10, will: undefined } as const;
  const stream = protocol === "STOMP" ? { filters: ["a"], acknowledges: true, offset: undefined } : undefined;
  const attached = engine.broker.attach({ ...request, stream, expiryMs: 60_000, onConnected: () => {} }, peer);
  const [attachment] = await Promise.all([attached, engine.clock.settle()]);
  peer.ended = () => attachment.detach({ expiryMs: 60_000, isRegular: stream !== undefined }); // As a gateway does.
  const how = { qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
  if (stream === undefined && !attachment.isPresent)
    await attachment.subscribe([{ filter: parseTopicFilter("a"), ...how }]);
  return { peer, attachment, session: attachment.session, isPresent: attachment.isPresent };
}
