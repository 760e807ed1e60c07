import { type EmbeddedChain, startEmbeddedChain } from "@stele/chain";
import { Signer } from "@stele/eth/node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createDeferred } from "../../lib/deferred.ts";
import { silentLogger } from "../../lib/logger.ts";
import type { RpcCall } from "./endpoint/connection.ts";
import { EndpointError } from "./endpoint/endpoint-error.ts";
import { EndpointSet } from "./endpoint/endpoint-set.ts";
import { FakeNode } from "./endpoint/testing/fake-node.ts";
import { FastClock } from "./endpoint/testing/fast-clock.ts";
import { createEvmHarness, testKey } from "./testing/evm-harness.ts";
import { InterceptedProvider } from "./testing/intercepted-provider.ts";
import { TestJournal } from "./testing/writer-world.ts";

const names = ["limited", "failing", "stranger to failing"];
const clock = new FastClock(25);
let chain: EmbeddedChain;

beforeAll(async () => {
  const genesisAccounts = names.map((name) => new Signer(testKey(name)).address);
  chain = await startEmbeddedChain({ file: ":memory:", chainId: 1337, genesisAccounts });
});

afterAll(async () => {
  await chain.stop();
});

/** Makes the endpoint serve the chain, and refuse every fourth request with the error of a rate limit. */
function serveLimited(node: FakeNode): void {
  let asked = 0;
  node.answer = async (call) => {
    asked += 1;
    if (asked % 4 === 0) return { id: call.id, error: { code: 429, message: "too many requests" } };
    const { method, params } = call as RpcCall; // The ledger's calls have parameters.
    return chain.request({ method, params }).then(
      (result) => ({ id: call.id, result }),
      ({ code, message }: { code: unknown; message: unknown }) => ({ id: call.id, error: { code, message } }),
    );
  };
}

test("a ledger starts behind an endpoint that refuses some of its requests because of a rate limit", async () => {
  await using node = await FakeNode.start();
  serveLimited(node);
  const set = new EndpointSet({ addresses: [node.url()], clock, logger: silentLogger, timeoutMs: 20_000 });
  const ledger = createEvmHarness(set, "limited").createLedger({ clock, pollMs: 1_000 });
  await ledger.start();
  expect(node.methods.length).toBeGreaterThan(8); // So it refused at least two.
  await ledger.stop();
  await set.close();
});

test("a start that fails does not wait for a rate limit that its reading of blocks exceeds", async () => {
  const provider = new InterceptedProvider({ request: async (call) => chain.request(call) });
  const harness = createEvmHarness(provider, "failing");
  const journal = new TestJournal();
  const first = harness.createLedger({ journal });
  await first.start();
  await first.stop();
  const isReading = createDeferred<void>();
  let reads = 0;
  provider.current = async ({ method }, pass) => {
    if (method !== "eth_getLogs") return pass();
    reads += 1;
    isReading.resolve();
    throw new EndpointError("answered HTTP 429", { reach: "unreached", isOverLimit: true });
  };
  let lists = 0;
  journal.listTransactions = async () => {
    lists += 1;
    if (lists === 1) return []; // Before the components start.
    await harness.stranger.open("a/topic");
    await isReading.promise;
    throw new Error("the journal cannot be read");
  };
  const ledger = harness.createLedger({ journal, clock, pollMs: 250 });
  await expect(ledger.start()).rejects.toThrow("the journal cannot be read");
  expect(reads).toBeLessThan(4);
});
