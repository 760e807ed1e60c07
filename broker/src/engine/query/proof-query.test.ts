import { expect, test } from "vitest";
import { TestEngine } from "../testing/test-engine.ts";

async function codeOf(engine: TestEngine, eventId: string, groupId?: string): Promise<unknown> {
  return engine.broker.getProof({ eventId, groupId }).then(
    () => "a proof",
    (error: { readonly code?: number }) => error.code,
  );
}

test("getProof refuses the same requests as getEvent, and reports a chain without proofs", async () => {
  const engine = await TestEngine.start();
  await engine.broker.open({ topic: "proofs", groupId: undefined });
  const eventId = await engine.publish("proofs", "a");
  expect(await codeOf(engine, "")).toBe(100300);
  expect(await codeOf(engine, "x".repeat(100))).toBe(100301);
  expect(await codeOf(engine, "x")).toBe(100302);
  expect(await codeOf(engine, eventId.replace("-1-", "-2-"))).toBe(100303);
  expect(await codeOf(engine, eventId.replace(/\d+$/, "99999"))).toBe(100304);
  expect(await codeOf(engine, eventId, "nobody")).toBe(200211);
  expect(await codeOf(engine, eventId)).toBe(200206);
  await engine.stop();
});
