import { type Hex, toQuantity } from "@stele/eth/node";
import { afterEach, beforeEach, expect, it } from "vitest";
import { parseTopicName } from "../../../domain/topic-name.ts";
import type { Logger } from "../../../lib/logger.ts";
import { silentLogger } from "../../../lib/logger.ts";
import type { GroupRecord } from "../../../ports/group-records.ts";
import { connectionRefused } from "../testing/intercepted-provider.ts";
import { until, WriterWorld } from "../testing/writer-world.ts";
import type { GroupMemory } from "./settle-registry.ts";

const unaborted = new AbortController().signal;
let world: WriterWorld;
beforeEach(async () => {
  world = await WriterWorld.start();
});
afterEach(async () => world.stop());

/** Returns a function that returns how often the registry was checked since this call. */
function countLooks(): () => number {
  let count = 0;
  world.provider.current = async (request, pass) => {
    count += request.method === "eth_getCode" ? 1 : 0;
    return pass();
  };
  return () => count;
}

const height = async (): Promise<number> => Number(await world.ask("eth_blockNumber"));

it("reports an outage with the remedy if a reorg removes the registry; a start with `deploy` restores topics and events", async () => {
  let record: GroupRecord | undefined;
  const memory: GroupMemory = { find: async () => record, save: async (first) => (record ??= first) };
  const { ledger, append, abandon } = await world.createFirstWriter({ memory });
  await append("one");
  await world.ask("anvil_mine", "0x2");
  const release = world.provider.holdSends();
  await world.ask("anvil_reorg", await height(), []);
  expect(await world.ask("eth_getCode", ledger.registryAddress, "latest")).toBe("0x");
  await world.ask("anvil_mine", "0x1");
  release();
  await until(async () => ledger.view().outage?.reason.includes("registry set to deploy") === true);
  await expect(append("refused")).rejects.toMatchObject({ code: 200205 });
  await abandon();
  await expect(world.createWriter({ memory })).rejects.toMatchObject({
    code: 200205,
    hints: expect.arrayContaining([expect.stringContaining("registry set to deploy")]),
  });
  expect(await world.ask("eth_getCode", ledger.registryAddress, "latest")).toBe("0x");
  const next = await world.createWriter({ memory, registry: "deploy" });
  expect(next.ledger.registryAddress).toBe(ledger.registryAddress);
  await until(async () => (await world.published()).length === 1);
  await next.ledger.openTopic(parseTopicName("another"), unaborted);
  await next.append("two");
  expect(await world.published()).toEqual(["one", "two"]);
  await next.abandon();
}, 20_000);

it("while the registry is missing, calls fail with 200205 and the group is down; logs each loss once", async () => {
  const reasons: string[] = [];
  const error: Logger["error"] = (message, fields) =>
    void (message === "topic registry missing" ? reasons.push(String(fields?.["reason"])) : undefined);
  const logger: Logger = { ...silentLogger, error, child: () => logger };
  const { ledger, abandon } = await world.createFirstWriter({ logger });
  const code = await world.ask("eth_getCode", ledger.registryAddress, "latest");
  const looks = countLooks();
  for (const name of [parseTopicName("b"), parseTopicName("c")]) {
    await world.ask("anvil_setCode", ledger.registryAddress, "0x");
    await expect(ledger.openTopic(name, unaborted)).rejects.toMatchObject({
      code: 200205,
      message: expect.stringContaining(`the group's topic registry ${ledger.registryAddress} is not on the chain`),
    });
    const since = ledger.view().outage?.since;
    await expect(ledger.openTopic(name, unaborted)).rejects.toMatchObject({
      code: 200205,
      message: expect.stringMatching(/^chain cannot be reached: the group's topic registry .* is not on the chain/),
    });
    const seen = looks();
    await until(async () => looks() > seen + 1);
    expect(ledger.view().outage?.since).toBe(since);
    await world.ask("anvil_setCode", ledger.registryAddress, code);
    await until(async () => ledger.view().outage === undefined);
    await ledger.openTopic(name, unaborted);
  }
  const once = expect.stringContaining("is not on the chain");
  expect(reasons).toEqual([once, once]);
  await abandon();
}, 20_000);

it("reports an outage with its reason while the chain is lower than the blocks already read", async () => {
  const { ledger, append, abandon } = await world.createFirstWriter();
  await append("one");
  const read = await height();
  await ledger.stop();
  world.provider.current = async (request, pass) => {
    if (request.method !== "eth_getBlockByNumber" || request.params?.[0] !== "latest") return pass();
    return world.ask("eth_getBlockByNumber", toQuantity(read - 1), false);
  };
  const { ledger: next } = await world.createWriter();
  const following = new AbortController();
  const { hash } = (await world.ask("eth_getBlockByNumber", toQuantity(read), false)) as { hash: Hex }; // A block.
  void next.follow({ number: read, hash }, following.signal)[Symbol.asyncIterator]().next();
  expect(next.view()).toMatchObject({
    outage: {
      reason: `the chain is at block ${read - 1}, the index at ${read}: the node may be behind or have lost its state`,
    },
    headBlock: read - 1,
  });
  world.provider.current = async (_, pass) => pass();
  await until(async () => next.view().outage === undefined);
  following.abort();
  await next.stop(AbortSignal.abort());
  await abandon();
});

it("logs a lasting outage once, and returns its reason to publishers", async () => {
  const warnings: string[] = [];
  const logger: Logger = { ...silentLogger, warn: (message) => void warnings.push(message), child: () => logger };
  const { ledger, append, abandon } = await world.createFirstWriter({ logger });
  const failure = { reason: "http://one: the connection was refused", since: 0 };
  await world.ask("anvil_setAutomine", false);
  const fates = [append("one"), append("two"), append("three")];
  await until(async () => (await world.poolSize()) === 3);
  world.provider.current = async () => {
    throw connectionRefused();
  };
  Object.assign(world.provider, { failure: () => failure });
  await until(async () => warnings.includes("fate of a transaction not read"));
  await expect(append("four")).rejects.toMatchObject({
    code: 200205,
    message: `chain cannot be reached: ${failure.reason}`,
  });
  expect(warnings.filter((message) => message === "fate of a transaction not read")).toHaveLength(1);
  Object.assign(world.provider, { failure: () => undefined });
  world.provider.current = async (_, pass) => pass();
  await world.ask("anvil_setAutomine", true);
  await world.ask("anvil_mine", "0x1");
  await Promise.all(fates);
  await abandon();
  expect(ledger.view().outage).toBeUndefined();
}, 20_000);
