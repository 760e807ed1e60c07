import { parseTransaction } from "viem";
import { expect, test } from "vitest";
import { SenderWorld } from "../testing/sender-world.ts";
import { noOp } from "./transaction-state.ts";

test.each(["0x", "", null, {}, "0xzz"])(
  "after the chain node answered eth_getTransactionCount with %j, the sender sends again once the answer is a number",
  async (answer) => {
    const world = new SenderWorld();
    const { node } = world;
    const request = node.request.bind(node);
    let isOdd = true;
    node.request = async (call) => (call.method === "eth_getTransactionCount" && isOdd ? answer : request(call));
    await world.send(1);
    await world.clock.advance(1000);
    isOdd = false;
    await world.clock.advance(1000);
    await world.send(2);
    expect([...node.pool].map((raw) => parseTransaction(raw).nonce ?? 0)).toEqual([0, 1, 2]);
  },
);

test("answers callers with the endpoint's refusal to return the next nonce, and reports it until the endpoint returns the nonce", async () => {
  const world = new SenderWorld();
  const { node, clock, sender, signer } = world;
  const accept = refuseNextNonce(world);
  const reason = "eth_getTransactionCount: pending is not supported";
  const answer = sender.send({ ...noOp(signer.address), gas: 50_000 }, new AbortController().signal);
  const rejected = expect(answer).rejects.toMatchObject({ code: 200205, message: expect.stringContaining(reason) });
  await clock.advance(10_000);
  await rejected;
  expect(sender.trouble.find()).toMatch(
    /^the chain does not return the signer's next nonce \(since 2023.*Z\): eth_getTransactionCount: pending is not supported. Use an endpoint that answers/,
  );
  accept();
  node.refusal = new Error("oversized data");
  await world.send(1);
  expect(sender.trouble.find()).toBeUndefined();
});

test("reports a refusal of the next nonce for only five minutes, since perhaps nobody publishes again", async () => {
  const world = new SenderWorld();
  refuseNextNonce(world);
  await world.send(1);
  await world.clock.advance(5_000);
  await world.clock.advance(299_000);
  expect(world.sender.trouble.find()).toMatch(/^the chain does not return the signer's next nonce /);
  await world.clock.advance(2_000);
  expect(world.sender.trouble.find()).toBeUndefined();
});

test("reports a transaction that no block includes rather than the refusal of the next nonce", async () => {
  const world = new SenderWorld({ deadlineMs: 60_000 });
  const { node, clock, sender } = world;
  await world.send(1, { logsExpected: undefined });
  node.isAway = true; // After a lost send, the sender asks for the nonce again.
  await world.send(1);
  await clock.advance(10_000);
  node.isAway = false;
  refuseNextNonce(world);
  await world.send(1);
  await clock.advance(10_000);
  expect(sender.trouble.find()).toMatch(/^the chain does not return the signer's next nonce /);
  await clock.advance(60_000);
  expect(sender.trouble.find()).toMatch(/^no block has the transaction with nonce 0 /);
});

test.each(["nonce too low", "replacement transaction underpriced"])(
  "sends at most five times a second while the chain node refuses every nonce with: %s",
  async (message) => {
    const { node, clock, sender, signer } = new SenderWorld();
    node.refusal = new Error(message);
    const request = { to: signer.address, data: new Uint8Array(100), gas: 50_000, logsExpected: 1 };
    const answer = sender.send(request, new AbortController().signal).catch((error: unknown) => error);
    await clock.advance(10_000);
    expect(node.sends).toBeGreaterThan(10);
    expect(node.sends).toBeLessThanOrEqual(51);
    await sender.stop(AbortSignal.abort());
    expect(await answer).toMatchObject({ code: 200205 });
  },
);

test("sends again at once with the next nonce if another sender used the nonce", async () => {
  const world = new SenderWorld();
  const { node, clock } = world;
  await world.send(1);
  await clock.advance(1000);
  node.onSend = () => {
    node.onSend = () => {};
    throw Object.assign(new Error("nonce too low"), { code: -32_000 });
  };
  await world.send(1);
  expect([...node.pool].map((raw) => parseTransaction(raw).nonce ?? 0)).toEqual([0, 2]);
});

/** Makes the chain node refuse requests for the next nonce until the test calls the returned function. */
function refuseNextNonce({ node }: SenderWorld): () => void {
  const request = node.request.bind(node);
  node.request = async (call) => {
    if (call.params?.[1] !== "pending") return request(call);
    throw Object.assign(new Error("pending is not supported"), { code: -32_602 });
  };
  return () => void (node.request = request);
}
