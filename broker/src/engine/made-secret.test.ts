import { afterEach, beforeEach, expect, it } from "vitest";
import { TestEngine } from "./testing/test-engine.ts";

const made = `whsec_${Buffer.from(new Uint8Array(32).fill(7)).toString("base64")}`;

let engine: TestEngine;
let received: string[];
beforeEach(async () => {
  engine = await TestEngine.start();
  received = [];
  await engine.broker.open({ topic: "a", groupId: undefined });
});
afterEach(() => engine.stop());

const subscribe = (url: string, call: object = {}) => engine.subscribe("a", { url, secret: "generate", ...call });
const onSecret = (secret: string): void => void received.push(secret);

it("stores the secret that the broker generates, and passes it to the caller", async () => {
  const id = await subscribe("http://receiver/", { onSecret });
  expect(received).toEqual([made]);
  const [row] = await engine.store.listSubscriptions();
  expect(row).toMatchObject({ id, delivery: { secret: made } });
});

it("passes no secret to a caller who is refused", async () => {
  await expect(subscribe("ftp://receiver/", { onSecret })).rejects.toMatchObject({ code: 100_501 });
  expect(received).toEqual([]);
});

it("refuses a generated secret with 200001 if the caller cannot receive a secret", async () => {
  await expect(subscribe("http://receiver/")).rejects.toMatchObject({ code: 200_001 });
  expect(await engine.store.listSubscriptions()).toEqual([]);
});
