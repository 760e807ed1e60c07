import { afterEach, expect, it, vi } from "vitest";
import { noMetrics, type GroupGauge } from "../ports/metrics.ts";
import { Session } from "./session/session.ts";
import { RecordingPeer } from "./testing/recording-peer.ts";
import { TestEngine } from "./testing/test-engine.ts";

let engine: TestEngine;
afterEach(async () => {
  vi.restoreAllMocks();
  await engine.stop();
});

it("neither a scrape of the metrics nor the check that logs groups going down visits a session; a health check does", async () => {
  let read: (() => readonly GroupGauge[]) | undefined;
  const watchGroups = (given: typeof read): void => void (read = given);
  engine = await TestEngine.start({ metrics: { ...noMetrics, watchGroups } });
  const request = { groupId: undefined, protocol: "MQTT", key: "c", isClean: true, windowMax: 1, expiryMs: 0 } as const;
  const attached = engine.broker.attach({ ...request, will: undefined, onConnected: () => {} }, new RecordingPeer());
  await Promise.all([attached, engine.clock.settle()]);
  const visits = vi.spyOn(Session.prototype, "isSuspended", "get");
  expect(read?.()).toMatchObject([{ groupId: "1", ready: true, subscriptions: 0, held: { suspended: 0 } }]);
  await engine.clock.advance(6_000);
  expect(visits).not.toHaveBeenCalled();
  engine.running.groupHealth();
  expect(visits).toHaveBeenCalled();
});
