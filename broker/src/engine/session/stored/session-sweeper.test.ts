import { expect, it } from "vitest";
import { defaultGroupId } from "../../../domain/group-id.ts";
import type { SessionId } from "../../../ports/session-store.ts";
import { createMemoryStore } from "../../../store/memory/memory-store.ts";
import type { AttachOrder } from "../../broker.ts";
import { RecordingPeer } from "../../testing/recording-peer.ts";
import { TestEngine } from "../../testing/test-engine.ts";
import { withSessions } from "../../testing/with-sessions.ts";

const order: AttachOrder = {
  groupId: defaultGroupId,
  protocol: "MQTT",
  key: "c",
  isClean: false,
  windowMax: 10,
  will: undefined,
  expiryMs: 86_400_000,
  onConnected: () => {},
};

it("does not keep a timer for each former connection of a long-lived session", async () => {
  const engine = await TestEngine.start();
  const connect = async (): Promise<void> => {
    const attached = engine.broker.attach(order, new RecordingPeer());
    const [attachment] = await Promise.all([attached, engine.clock.settle()]);
    attachment.detach({ expiryMs: order.expiryMs, isRegular: true });
    await engine.clock.advance(100);
  };
  await connect();
  const before = engine.clock.timers;
  for (let count = 0; count < 20; count += 1) await connect();
  expect(engine.clock.timers).toBeLessThan(before + 5);
  await engine.stop();
});

it("drops damaged sessions that are due, and ends the other due sessions after them", async () => {
  const memory = createMemoryStore();
  const damaged = new Set<SessionId>();
  const findSession = async (id: SessionId) => (damaged.has(id) ? undefined : memory.sessions.findSession(id));
  const engine = await TestEngine.start({ store: withSessions(memory, { findSession }) });
  const expiryMs = 20_000;
  for (let count = 0; count < 150; count += 1) {
    const attached = engine.broker.attach({ ...order, expiryMs, key: String(count) }, new RecordingPeer());
    const [attachment] = await Promise.all([attached, engine.clock.settle()]);
    if (count < 120) damaged.add(attachment.session.id as SessionId); // A session's identifier.
    attachment.detach({ expiryMs, isRegular: true });
    await engine.clock.advance(10);
  }
  await engine.clock.advance(expiryMs + 5_000);
  expect(await memory.sessions.listSessions({ after: undefined, limit: 200 })).toEqual([]);
  await engine.stop();
});
