import { afterEach, beforeEach, expect, it } from "vitest";
import { parseTopicFilter } from "../../../domain/topic-filter.ts";
import { createMemoryStore } from "../../../store/memory/memory-store.ts";
import type { Attachment, WillRequest } from "../../broker.ts";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { TestEngine } from "../../testing/test-engine.ts";
import { withSessionCalls } from "../../testing/with-session-calls.ts";

let memory: ReturnType<typeof createMemoryStore>;
let engine: TestEngine;
/** Called when the store has removed a filter, before the broker knows it. */
let onRemoved: () => void;

beforeEach(async () => {
  onRemoved = () => {};
  memory = createMemoryStore();
  const store = withSessionCalls(memory, {
    removeSessionFilter: async (id) => {
      const isRemoved = await memory.sessions.removeSessionFilter(id);
      onRemoved();
      return isRemoved;
    },
  });
  engine = await TestEngine.start({ store });
  for (const topic of ["a", "will"]) await engine.broker.open({ topic, groupId: undefined });
});
afterEach(() => engine.stop());

const will: WillRequest = {
  delayMs: 0,
  call: { topic: "will", groupId: undefined, content: new Uint8Array([1]), extensions: [] },
  opensTopic: false,
  expiresAfterMs: undefined,
};

async function attach(peer: RecordingPeer, key: string): Promise<Attachment> {
  const request = { groupId: undefined, protocol: "MQTT", key, isClean: false, windowMax: 10, will } as const;
  const attached = engine.broker.attach({ ...request, expiryMs: 60_000, onConnected: () => {} }, peer);
  const [attachment] = await Promise.all([attached, engine.clock.settle()]);
  const rest = { qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
  await attachment.subscribe([{ filter: parseTopicFilter("$share/s/a"), ...rest }]);
  return attachment;
}

const listSessions = () => memory.sessions.listSessions({ after: undefined, limit: 9 });

it("if a client disconnects while a caller removes its filter, its session publishes the will, gives events of shares back, and expires", async () => {
  const first = await attach(new RecordingPeer(), "first");
  await engine.publish("a", "1");
  const [row] = await listSessions();
  const other = new RecordingPeer();
  await attach(other, "other");
  onRemoved = () => first.detach({ expiryMs: 2_000, isRegular: false });
  await engine.broker.unSubscribe({ subscriptionId: row?.filters[0]?.id ?? "" });
  await engine.clock.advance(1_500);
  expect((await engine.broker.state({ topic: "will", groupId: undefined })).sequence).toBe(1);
  expect(other.sequences).toEqual([1]);
  await engine.clock.advance(2_000);
  expect((await listSessions()).map(({ session }) => session.key)).toEqual(["other"]);
});
