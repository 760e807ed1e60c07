import { BrokerError } from "@stele/wire";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Broker } from "../engine/broker.ts";
import { serve } from "../gateway/testing/serve.ts";
import { AnvilChain, someEvents } from "../ledger/evm/proof/testing/anvil-chain.ts";
import type { Published } from "../ledger/evm/proof/testing/prove.ts";
import { runVerify, type VerifyOutcome } from "./run-verify.ts";
import { brokerOf, honestClaims } from "./testing/chain-broker.ts";

const topic = "verify/unread";

let chain: AnvilChain;
let batches: readonly Published[];

beforeAll(async () => {
  chain = await AnvilChain.start();
  await chain.open(topic);
  batches = [
    ...(await chain.publish(topic, [someEvents(2)])),
    ...(await chain.publish(topic, [someEvents(3)])),
    ...(await chain.publish(topic, [someEvents(1)])),
  ];
});

afterAll(() => chain.stop());

/** Runs the command against a broker that has the batches at `known`, and calls the other events unread. The state of its topic has the batches at `stated`. */
async function run(known: readonly number[], words: readonly string[] = [], stated = known): Promise<VerifyOutcome> {
  const partOf = (places: readonly number[]) => {
    const of = { chain, topic, batches: batches.filter((_, index) => places.includes(index)) };
    return brokerOf(honestClaims(of), of);
  };
  const { state } = partOf(stated);
  const broker = { ...partOf(known), ...(state === undefined ? {} : { state }) };
  const getEvent: Broker["getEvent"] = async (by, call) => {
    try {
      return (await broker.getEvent?.(by, call)) as never; // brokerOf always has getEvent.
    } catch {
      throw new BrokerError("eventBeyondHead");
    }
  };
  await using server = await serve({ ...broker, getEvent });
  const flags = ["--topic", topic, "--registry", chain.registry, "--broker", server.url, "--rpc", chain.url];
  return await runVerify([...flags, ...words], { env: {} }); // Awaited here: the server closes at the end of this block.
}

test("exits 2 for events in blocks that the broker has not read", async () => {
  const [, second] = batches;
  expect(await run([0])).toEqual({
    exitCode: 2,
    output: "",
    problem: `stele verify: the broker has not read block ${second?.blockNumber} with sequence 3 yet; ask again later, or pass --to 2\n`,
  });
  expect(await run([0], ["--to", "2"])).toMatchObject({ exitCode: 0 });
  expect(await run([])).toMatchObject({
    exitCode: 2,
    problem: expect.stringMatching(/sequence 1 yet; ask again later\n$/),
  });
});

test("refutes a broker that calls events unread, and has later ones", async () => {
  const { exitCode, output } = await run([0, 2], ["--json"], [0]);
  expect(JSON.parse(output)).toMatchObject({ counts: { missing: 3 }, differences: [{ kind: "missing", sequence: 3 }] });
  expect(exitCode).toBe(1);
});

test("refutes a broker that calls events unread, and whose topic has a later block", async () => {
  const { exitCode, output } = await run([0, 2], ["--to", "5", "--json"]);
  const differences = [3, 4, 5].map((sequence) => ({ kind: "missing", sequence }));
  expect(JSON.parse(output)).toMatchObject({ counts: { missing: 3 }, differences });
  expect(exitCode).toBe(1);
});
