import { type Address, concatHex, type Hex, keccak256, numberToHex, toRlp } from "viem";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startAnvilChain } from "./testing/anvil-chain.ts";
import { batchOf } from "./testing/batches.ts";
import { RegistryFixture } from "./testing/registry-fixture.ts";
import type { TestChain } from "./testing/test-chain.ts";

let chain: TestChain;
let tracingChain: TestChain;
beforeAll(async () => {
  chain = await startAnvilChain();
  tracingChain = await startAnvilChain(["--steps-tracing"]);
});
afterAll(async () => {
  await chain.stop();
  await tracingChain.stop();
});

test("gas matches gas-snapshot.json", async () => {
  const gas = await measure(await RegistryFixture.deploy(chain.transport));
  // `npm run gas:update -w @stele/contracts` writes the file.
  await expect(`${JSON.stringify(gas, null, 2)}\n`).toMatchFileSnapshot("../gas-snapshot.json");
});

test("publish reads and writes one storage slot per batch", async () => {
  const fixture = await RegistryFixture.deploy(tracingChain.transport);
  const [first, second] = [await fixture.openTopic("a"), await fixture.openTopic("b")];
  const receipt = await fixture.publish([encodedBatch(first, 3), encodedBatch(second, 3), encodedBatch(first, 3)]);
  const opcodes = await traceOpcodes(fixture, receipt.transactionHash);
  expect(opcodes.filter((opcode) => opcode === "SSTORE")).toHaveLength(3);
  expect(opcodes.filter((opcode) => opcode === "SLOAD")).toHaveLength(3);
});

const topicCount = 10;
const manyNames = Array.from({ length: 100 }, (_, index) => `many/${index}`);

async function measure(fixture: RegistryFixture) {
  const open = await fixture.open("topic/0");
  const topic = await fixture.topicOf("topic/0");
  const topics = [topic];
  for (let index = 1; index < topicCount; index += 1) topics.push(await fixture.openTopic(`topic/${index}`));
  const gasOf = async (batches: Parameters<RegistryFixture["publish"]>[0]) =>
    Number((await fixture.publish(batches)).gasUsed);
  return {
    open: Number(open.gasUsed),
    "open, 100 topics at once": Number((await fixture.open(manyNames)).gasUsed),
    "open and publish, 1 event of 256 B": Number(
      (await fixture.openAndPublish(["first"], [encodedBatch(fixture.addressOf("first"), 1)])).gasUsed,
    ),
    "publish, 1 event of 256 B": await gasOf([encodedBatch(topic, 1)]),
    "publish, 100 events of 256 B in one batch": await gasOf([encodedBatch(topic, 100)]),
    "publish, 1,000 events of 256 B in one batch": await gasOf([encodedBatch(topic, 1000)]),
    "publish, 10 topics with 10 events of 256 B each": await gasOf(topics.map((each) => encodedBatch(each, 10))),
    "publish, 100 topics with 1 event of 256 B each": await gasOf(
      manyNames.map((name) => encodedBatch(fixture.addressOf(name), 1)),
    ),
    close: Number((await fixture.close("topic/0")).gasUsed),
    reopen: Number((await fixture.open("topic/0")).gasUsed),
  };
}

/** A batch as the broker encodes it: an RLP list of events [content, []]. Each content has 256 bytes, and no two words of it are equal. */
function encodedBatch(topic: Address, count: number) {
  const contents = Array.from({ length: count }, (_, index) => contentOf(index));
  return batchOf(topic, count, toRlp(contents.map((content) => [content, []])));
}

function contentOf(index: number): Hex {
  const words = Array.from({ length: 8 }, (_, word) => keccak256(numberToHex(index * 8 + word)));
  return concatHex(words);
}

async function traceOpcodes(fixture: RegistryFixture, hash: Hex): Promise<readonly string[]> {
  const trace = await fixture.client.request<TraceRequest>({ method: "debug_traceTransaction", params: [hash] });
  return trace.structLogs.map(({ op }) => op);
}

/** The fields of geth's default tracer that the tests read. */
interface TraceRequest {
  Method: "debug_traceTransaction";
  Parameters: [hash: Hex];
  ReturnType: { structLogs: readonly { op: string }[] };
}
