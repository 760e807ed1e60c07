import { BrokerError } from "@stele/wire";
import { expect, test } from "vitest";
import type { ChainCheck } from "../../ports/chain-check.ts";
import { ReceiptsTooLong } from "../../ports/chain-proof.ts";
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

test.each([
  ["does not inspect a block whose receipts are too long", new ReceiptsTooLong(1), []],
  ["inspects the block, and the next one, if the chain proves nothing for another reason", undefined, [1, 2]],
])("getProof %s", async (_, cause, blocks) => {
  const inspected: number[] = [];
  const chainCheck: ChainCheck = {
    check: async (from) => {
      inspected.push(from);
      return { upTo: from, damaged: [] };
    },
    repair: async () => false,
    checkIndexEntries: async () => ({ isMore: false, entries: 0, isDamaged: false }),
    checkState: async () => ({ next: undefined, nodes: 0, damaged: [], repaired: 0 }),
  };
  const findProof = (): Promise<never> => Promise.reject(new BrokerError("proofUnavailable", { cause }));
  const engine = await TestEngine.start({ chainCheck, findProof });
  await engine.broker.open({ topic: "proofs", groupId: undefined });
  const eventId = await engine.publish("proofs", "a");
  const blockNumber = Number(eventId.split("-").at(-1));
  expect(await codeOf(engine, eventId)).toBe(200206);
  expect(inspected).toEqual(blocks.map((block) => blockNumber + block - 1));
  await engine.stop();
});
