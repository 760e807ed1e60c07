import { expect, it } from "vitest";
import { parseTopicFilter } from "../../../domain/topic-filter.ts";
import { createMemoryStore } from "../../../store/memory/memory-store.ts";
import type { Attachment } from "../../broker.ts";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { TestEngine } from "../../testing/test-engine.ts";
import { withSessionCalls } from "../../testing/with-session-calls.ts";

it("searches for returned events when a member's connection ends, and not when that of another client does", async () => {
  const memory = createMemoryStore();
  let searches = 0;
  const findReturning: typeof memory.shares.findReturning = async (ids) => {
    searches += 1;
    return memory.shares.findReturning(ids);
  };
  const engine = await TestEngine.start({ store: withSessionCalls(memory, { findReturning }) });
  await engine.broker.open({ topic: "a", groupId: undefined });
  const attach = async (key: string, filter: string): Promise<Attachment> => {
    const request = {
      groupId: undefined,
      protocol: "MQTT",
      key,
      isClean: false,
      windowMax: 9,
      will: undefined,
    } as const;
    const rest = { expiryMs: 60_000, onConnected: () => {} };
    const attached = engine.broker.attach({ ...request, ...rest }, new RecordingPeer());
    const [attachment] = await Promise.all([attached, engine.clock.settle()]);
    const options = { qos: 1, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
    await Promise.all([
      attachment.subscribe([{ ...options, filter: parseTopicFilter(filter) }]),
      engine.clock.settle(),
    ]);
    return attachment;
  };
  const leave = async (attachment: Attachment): Promise<void> => {
    attachment.detach({ expiryMs: 60_000, isRegular: true });
    await engine.clock.settle();
  };
  await attach("member", "$share/s/a");
  const leaving = await attach("leaving member", "$share/s/a");
  await leave(await attach("other", "a"));
  await leave(await attach("other", "a"));
  expect(searches).toBe(0);
  await leave(leaving);
  expect(searches).toBe(1);
  await attach("member", "$share/s/a"); // takes the session over
  expect(searches).toBe(2);
  await engine.stop();
});
