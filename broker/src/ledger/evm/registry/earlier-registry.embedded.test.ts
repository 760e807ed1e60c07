import { startEmbeddedChain } from "@stele/chain";
import { Signer, toHex } from "@stele/eth/node";
import { expect, test } from "vitest";
import type { Address } from "../../../domain/topic.ts";
import { parseTopicName } from "../../../domain/topic-name.ts";
import { collectAll, flat } from "../../../ports/testing/followed-blocks.ts";
import { toOutgoingBatch } from "../../../ports/testing/outgoing-batch.ts";
import { createEvmHarness, testKey } from "../testing/evm-harness.ts";
import { InterceptedProvider, passAll } from "../testing/intercepted-provider.ts";
import { encodePublish } from "../write/publish-calldata.ts";

const never = new AbortController().signal;
const name = parseTopicName("earlier");
const selector = toHex(encodePublish([], "publishAll")).slice(0, 10);
const unknown: Address = `0x${"ab".repeat(20)}`;

test.each(["header not found", "missing trie node 1234"])(
  "a start fails with 200205 while the chain node lacks state, and later finds the registry and its publishAll: %s",
  async (message) => {
    const genesisAccounts = [new Signer(testKey("earlier")).address];
    const chain = await startEmbeddedChain({ file: ":memory:", chainId: 1337, genesisAccounts });
    const provider = new InterceptedProvider(chain);
    const harness = createEvmHarness(provider, "earlier");
    const first = harness.createLedger();
    await first.start();
    await first.stop();
    let failing = "0x";
    provider.current = async (request, pass) => {
      if (request.method !== "eth_call" || !JSON.stringify(request.params ?? []).includes(failing)) return pass();
      throw Object.assign(new Error(message), { code: -32_000 });
    };
    const ledger = harness.createLedger();
    await expect(ledger.start()).rejects.toMatchObject({ code: 200205 });
    failing = selector;
    await expect(ledger.start()).rejects.toMatchObject({ code: 200205 });
    provider.current = passAll;
    await ledger.start();
    expect(ledger.registryAddress).toBe(first.registryAddress);
    const events = [{ content: Buffer.from("a"), extensions: [] }];
    const batches = [toOutgoingBatch({ topic: name, address: unknown, events })];
    await expect(ledger.append(batches, never, { isWhole: true })).rejects.toMatchObject({ code: 200202 });
    await ledger.stop();
    await chain.stop();
  },
);

test("on a registry without publishAll, an append with isWhole commits the valid batch and rejects the other", async () => {
  const genesisAccounts = [new Signer(testKey("earlier")).address];
  const chain = await startEmbeddedChain({ file: ":memory:", chainId: 1337, genesisAccounts });
  const provider = new InterceptedProvider(chain);
  provider.current = async (request, pass) => {
    if (!JSON.stringify(request.params ?? []).includes(selector)) return pass();
    throw Object.assign(new Error("execution reverted"), { code: 3 });
  };
  const ledger = createEvmHarness(provider, "earlier").createLedger();
  await ledger.start();
  await ledger.openTopic(name, never);
  const [opened] = flat(await collectAll(ledger));
  const batches = [opened?.address ?? unknown, unknown].map((address) =>
    toOutgoingBatch({ topic: name, address, events: [{ content: Buffer.from("a"), extensions: [] }] }),
  );
  const outcomes = await ledger.append(batches, never, { isWhole: true });
  expect(outcomes).toMatchObject([{ status: "committed" }, { status: "rejected", reason: "unknown-topic" }]);
  await ledger.stop();
  await chain.stop();
});
