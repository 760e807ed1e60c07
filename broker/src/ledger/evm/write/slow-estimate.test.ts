import { parseTransaction } from "viem";
import { expect, test } from "vitest";
import { pause } from "../../../lib/pause.ts";
import { type SenderOptions, SenderWorld } from "../testing/sender-world.ts";
import { TestJournal } from "../testing/writer-world.ts";

const enoughGas = 80_000;

/** A chain that asks for more gas than the formula says, on an endpoint that takes 3 s for an estimate. */
function startShort(options: SenderOptions = {}): SenderWorld {
  const world: SenderWorld = new SenderWorld({
    ...options,
    estimateGas: async () => {
      await pause(world.clock, 3000);
      return enoughGas;
    },
  });
  world.node.onSend = (raw) => {
    if ((parseTransaction(raw).gas ?? 0n) < enoughGas)
      throw Object.assign(new Error("intrinsic gas too low"), { code: -32_000 });
  };
  return world;
}

test.each([
  ["without a journal", {}],
  ["with a journal", { journal: new TestJournal() }],
])("sends a transaction with more gas even if the estimate is slow, %s", async (_, options) => {
  const { node, clock, sender, signer } = startShort(options);
  let answer: unknown;
  const request = { to: signer.address, data: new Uint8Array(100), gas: 50_000, logsExpected: 1 };
  void sender.send(request, new AbortController().signal).catch((error: unknown) => (answer = error));
  await clock.advance(10_000);
  expect(answer).toBeUndefined();
  expect([...node.pool].map((raw) => parseTransaction(raw).gas)).toEqual([BigInt(enoughGas)]);
});

test("does not refuse a transaction while another version of it is on its way to the chain node", async () => {
  const { node, clock, sender, signer } = startShort({ journal: new TestJournal(), deadlineMs: 20_000 });
  let sends = 0;
  node.before = async (method) => {
    if (method !== "eth_sendRawTransaction") return;
    sends += 1;
    if (sends > 1) await pause(clock, 4000); // Longer than the estimate.
  };
  const request = { to: signer.address, data: new Uint8Array(100), gas: 50_000, logsExpected: 1 };
  const answer = sender.send(request, new AbortController().signal).catch((error: unknown) => error);
  await clock.advance(60_000);
  expect(node.pool.size).toBe(1);
  expect(await answer).toMatchObject({ code: 200201 });
});
