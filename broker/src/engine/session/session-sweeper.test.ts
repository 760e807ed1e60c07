import { expect, it } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import type { AttachOrder } from "../broker.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestEngine } from "../testing/test-engine.ts";

it("keeps no timer for each connection that a long session had", async () => {
  const engine = await TestEngine.start();
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
