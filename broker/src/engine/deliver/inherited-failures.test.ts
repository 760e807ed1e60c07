import { afterEach, beforeEach, expect, it } from "vitest";
import { before } from "../../domain/position.ts";
import { allowAll } from "../access/policy.ts";
import { TestEngine } from "../testing/test-engine.ts";

let engine: TestEngine;
let denied: string | undefined;
beforeEach(async () => {
  denied = undefined;
  engine = await TestEngine.start({ policy: { ...allowAll, mayReceive: (_, { topic }) => topic !== denied } });
  for (const topic of ["a", "b"]) await engine.broker.open({ topic, groupId: undefined });
  engine.sink.receive("http://down/", () => ({ status: "failed", reason: "500" }));
});
afterEach(() => engine.stop());

it("the next event gets all its attempts after a restart in which the right to the failing one ended", async () => {
  await engine.subscribe("+", { url: "http://down/", options: { onFailure: "skip", attemptsMax: 3 } });
  for (const topic of ["a", "b"]) await engine.publish(topic, topic);
  await engine.clock.advance(2_500);
  const topicsTried = () => engine.sink.attempts.map(({ event }) => event.topic);
  expect(topicsTried()).toEqual(["a", "a"]);
  denied = "a";
  await engine.rebuild();
  await engine.broker.start();
  await engine.clock.advance(60_000);
  expect(topicsTried().filter((topic) => topic === "b")).toHaveLength(3);
});

it("the stored cursor is right before the failing event, so that the event keeps its failures after a kill", async () => {
  denied = "a";
  await engine.subscribe("+", { url: "http://down/", options: { onFailure: "skip", attemptsMax: 3 } });
  for (const topic of ["a", "b"]) await engine.publish(topic, topic);
  await engine.clock.advance(2_500);
  const [attempt] = engine.sink.attempts;
  const cursor = attempt && before(attempt.event.position);
  expect(await engine.store.listSubscriptions()).toMatchObject([{ cursor, failedAttempts: 1 }]);
});
