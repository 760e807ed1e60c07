import { afterEach, beforeEach, expect, it } from "vitest";
import type { Hash } from "../../domain/topic.ts";
import type { BlockRef, LedgerEntry } from "../../ports/ledger.ts";
import { nearBlocks } from "./block-reader.ts";
import type { EvmLedger } from "./evm-ledger.ts";
import { toQuantity } from "./hex.ts";
import type { EvmProvider, RpcRequest } from "./rpc.ts";
import { WriterWorld } from "./testing/writer-world.ts";

const never = new AbortController().signal;
let world: WriterWorld;
beforeEach(async () => {
  world = await WriterWorld.start();
});
afterEach(async () => world.stop());

const refOf = async (number: number): Promise<BlockRef> => {
  const { hash } = (await world.ask("eth_getBlockByNumber", toQuantity(number), false)) as { hash: Hash }; // By the specification.
  return { number, hash };
};

/** Two nodes behind one address: every second question about a contract goes to one that has no block above `height`. */
function createBalancer(height: number): EvmProvider & { staleAnswers: number } {
  let questions = 0;
  const askStale = async ({ method, params = [] }: RpcRequest): Promise<unknown> => {
    balancer.staleAnswers += 1;
    if (method === "eth_call" && params[1] === "latest") return world.ask(method, params[0], toQuantity(height));
    if (method === "eth_getBlockByNumber" && Number(params[0]) > height) return null;
    throw Object.assign(new Error("unknown block"), { code: -32000 });
  };
  const ask = async (calls: readonly RpcRequest[]): Promise<readonly unknown[]> => {
    const isQuestion = calls.some(({ method }) => method === "eth_call");
    questions += isQuestion ? 1 : 0;
    const isStale = isQuestion && questions % 2 === 1;
    const answers: unknown[] = [];
    for (const call of calls) answers.push(await (isStale ? askStale(call) : world.provider.request(call)));
    return answers;
  };
  const balancer = {
    staleAnswers: 0,
    request: async (call: RpcRequest) => (await ask([call]))[0],
    requestAll: ask,
  };
  return balancer;
}

async function readUpTo(ledger: EvmLedger, head: number, after: BlockRef): Promise<readonly LedgerEntry[]> {
  const entries: LedgerEntry[] = [];
  for await (const step of ledger.follow(after, never)) {
    const blocks = step.kind === "blocks" ? step.blocks : [];
    entries.push(...blocks.flatMap((block) => block.entries));
    if ((blocks.at(-1)?.number ?? 0) >= head) break;
  }
  return entries;
}

it("a node that has not got a topic's block yet takes no event away from a broker that catches up", async () => {
  const first = await world.createFirstWriter();
  const opened = Number(await world.ask("eth_blockNumber"));
  await first.append("one");
  await world.ask("anvil_mine", toQuantity(2 * nearBlocks));
  await first.append("two");
  const head = Number(await world.ask("eth_blockNumber"));
  await first.ledger.stop();
  const balancer = createBalancer(opened - 1);
  const { ledger } = await world.createWriter({ provider: balancer });
  const stale = balancer.staleAnswers;
  const entries = await readUpTo(ledger, head, await refOf(opened));
  expect(entries).toMatchObject([
    { kind: "events-committed", firstSequence: 1 },
    { kind: "events-committed", firstSequence: 2 },
  ]);
  expect(balancer.staleAnswers).toBeGreaterThan(stale);
  await ledger.stop();
});
