import { type EmbeddedChain, startEmbeddedChain } from "@stele/chain";
import { topicRegistryAbi } from "@stele/contracts";
import { fromHex, keccak256, Signer, toHex } from "@stele/eth/node";
import { topicAddress } from "@stele/wire";
import { encodeFunctionData } from "viem";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Address } from "../../../domain/topic.ts";
import { parseTopicName, type TopicName } from "../../../domain/topic-name.ts";
import type { GroupRecord } from "../../../ports/group-records.ts";
import type { BatchOutcome } from "../../../ports/ledger.ts";
import { toOutgoingBatch } from "../../../ports/testing/outgoing-batch.ts";
import type { EvmProvider } from "../endpoint/rpc.ts";
import type { EvmLedger } from "../evm-ledger.ts";
import type { EvmLedgerOptions } from "../evm-ledger-options.ts";
import { type Anvil, startAnvil } from "../testing/anvil.ts";
import { createEvmHarness, type EvmHarness, testKey } from "../testing/evm-harness.ts";
import { InterceptedProvider } from "../testing/intercepted-provider.ts";
import { Stranger } from "../testing/stranger.ts";
import { until } from "../testing/writer-world.ts";
import { openGas, publishGas, writersGas } from "../write/gas.ts";
import { closeCalldata, openCalldata } from "./registry.ts";
import type { GroupMemory } from "./settle-registry.ts";

interface World {
  readonly name: string;
  start(accounts: readonly Address[]): Promise<{ readonly provider: EvmProvider; stop(): Promise<void> }>;
}

const worlds: readonly World[] = [
  {
    name: "the embedded chain",
    async start(accounts) {
      const options = { file: ":memory:", chainId: 1337, genesisAccounts: [...accounts] };
      const provider: EmbeddedChain = await startEmbeddedChain(options);
      return { provider, stop: () => provider.stop() };
    },
  },
  {
    name: "anvil",
    async start(accounts) {
      const anvil: Anvil = await startAnvil();
      for (const account of accounts) {
        await anvil.provider.request({ method: "anvil_setBalance", params: [account, "0xffffffffffffffffffff"] });
      }
      return anvil;
    },
  },
];

const unaborted = new AbortController().signal;
const testsMax = 30;
const nodes = ["first", "second", "third"] as const;
type Node = (typeof nodes)[number];

describe.each(worlds)("topics for the group's own signers on $name", ({ start }) => {
  let world: Awaited<ReturnType<World["start"]>>;
  let tests = 0;
  let harnesses: ReadonlyMap<Node, EvmHarness>;
  let ledgers: EvmLedger[];
  /** The memory that the nodes share. */
  let memory: GroupMemory & { record: GroupRecord | undefined; signers: Address[] };

  const keyOf = (node: Node, number = tests): string => `${node} of test ${number}`;
  const addressOf = (node: Node): Address => new Signer(testKey(keyOf(node))).address;

  beforeAll(async () => {
    const names = Array.from({ length: testsMax }, (_, number) => nodes.map((node) => keyOf(node, number))).flat();
    const keys = names.flatMap((name) => [name, `stranger to ${name}`]);
    world = await start(keys.map((key) => new Signer(testKey(key)).address));
  });
  afterAll(async () => world.stop());

  beforeEach(() => {
    tests += 1;
    ledgers = [];
    harnesses = new Map(nodes.map((node) => [node, createEvmHarness(world.provider, keyOf(node))]));
    memory = {
      record: undefined,
      signers: [],
      find: async () => memory.record,
      save: async (record) => (memory.record ??= record),
      saveWriters: async (writers, former) => {
        const { record } = memory;
        if (record === undefined) return writers;
        const kept = record.writers?.number === former?.number ? writers : (record.writers ?? writers);
        memory.record = { ...record, writers: kept };
        return kept;
      },
      listSigners: async () => memory.signers,
    };
  });
  afterEach(async () => {
    await Promise.all(ledgers.map((ledger) => ledger.stop(AbortSignal.abort())));
  });

  function harnessOf(node: Node): EvmHarness {
    const harness = harnesses.get(node);
    if (harness === undefined) throw new Error(`no node ${node}`);
    return harness;
  }

  async function startNode(node: Node, options: Partial<EvmLedgerOptions> = {}): Promise<EvmLedger> {
    const ledger = harnessOf(node).createLedger({ topicWriters: "own", ...options });
    ledgers.push(ledger);
    await ledger.start();
    return ledger;
  }

  async function sentBy(node: Node): Promise<number> {
    const params = [addressOf(node), "latest"];
    return Number(await world.provider.request({ method: "eth_getTransactionCount", params }));
  }

  test("a stranger cannot publish, close or reopen, and leaves no gap in the sequence", async () => {
    const ledger = await startNode("first");
    const { stranger } = harnessOf("first");
    const ours = parseTopicName("ours");
    await ledger.openTopic(ours, unaborted);
    await stranger.publish([batchOf(ledger, ours)]);
    expect(await publish(ledger, ours)).toMatchObject({ status: "committed", firstSequence: 1 });
    await expect(stranger.send(closeCalldata(ours), ledger.registryAddress)).rejects.toThrow("reverted");
    await ledger.closeTopic(ours, unaborted);
    await stranger.open(ours);
    expect(await publish(ledger, ours)).toMatchObject({ status: "rejected", reason: "closed-topic" });
    await ledger.openTopic(ours, unaborted);
    expect(await publish(ledger, ours)).toMatchObject({ status: "committed", firstSequence: 2 });
  });

  test("a stranger gains no rights as the owner of another set", async () => {
    const ledger = await startNode("first");
    const { stranger } = harnessOf("first");
    const args = [[addressOf("first")]] as const;
    const create = encodeFunctionData({ abi: topicRegistryAbi, functionName: "createWriters", args });
    await stranger.send(fromHex(create), ledger.registryAddress);
    const ours = parseTopicName("ours");
    await ledger.openTopic(ours, unaborted);
    expect(ledger.view().facts).toMatchObject({ writers: 2 });
    const writers = await ledger.findWriters(ours, unaborted);
    expect(writers).toEqual({ kind: "set", number: 2, owner: ledger.sender, isOwn: true });
    await stranger.publish([batchOf(ledger, ours)]);
    expect(await publish(ledger, ours)).toMatchObject({ status: "committed", firstSequence: 1 });
  });

  /** Starts a node whose group remembers the set of this number, which the chain lacks. */
  async function startRemembering(number: number): Promise<EvmLedger> {
    await (await startNode("first", { memory })).stop();
    if (memory.record === undefined) throw new Error("the group remembers its registry");
    memory.record = { ...memory.record, writers: { number, owner: addressOf("first") } };
    return startNode("first", { memory });
  }

  describe("a remembered set", () => {
    test("a new set replaces a remembered one that the chain lacks", async () => {
      const ledger = await startRemembering(7);
      const ours = parseTopicName("ours");
      await ledger.openTopic(ours, unaborted);
      expect(memory.record?.writers).toEqual({ number: 1, owner: addressOf("first") });
      await harnessOf("first").stranger.publish([batchOf(ledger, ours)]);
      expect(await publish(ledger, ours)).toMatchObject({ status: "committed", firstSequence: 1 });
    });

    test("a remembered set is not used if a stranger's set has its number, even if our account is a member of the stranger's set", async () => {
      const ledger = await startRemembering(1);
      const { stranger } = harnessOf("first");
      const args = [[addressOf("first")]] as const;
      const create = encodeFunctionData({ abi: topicRegistryAbi, functionName: "createWriters", args });
      await stranger.send(fromHex(create), ledger.registryAddress);
      const ours = parseTopicName("ours");
      await ledger.openTopic(ours, unaborted);
      expect(memory.record?.writers).toEqual({ number: 2, owner: addressOf("first") });
      await stranger.publish([batchOf(ledger, ours)]);
      expect(await publish(ledger, ours)).toMatchObject({ status: "committed", firstSequence: 1 });
    });

    test("two running nodes replace a remembered set that the chain lacks only once, and both may write", async () => {
      memory.signers = [addressOf("first"), addressOf("second")];
      const first = await startRemembering(7);
      const second = await startNode("second", { memory, registry: first.registryAddress });
      const names = [parseTopicName("one"), parseTopicName("two")] as const;
      await Promise.all([first.openTopic(names[0], unaborted), second.openTopic(names[1], unaborted)]);
      expect(first.view().facts["writers"]).toBe(memory.record?.writers?.number);
      expect(second.view().facts["writers"]).toBe(memory.record?.writers?.number);
      expect(await publish(second, names[0])).toMatchObject({ status: "committed" });
      expect(await publish(first, names[1])).toMatchObject({ status: "committed" });
    });
  });

  test("with topicWriters `everyone`, topics are for everyone and no set is created", async () => {
    const ledger = await startNode("first", { topicWriters: "everyone", memory });
    const { stranger } = harnessOf("first");
    const shared = parseTopicName("shared");
    await ledger.openTopic(shared, unaborted);
    expect(await sentBy("first")).toBe(2);
    await stranger.publish([batchOf(ledger, shared)]);
    expect(await publish(ledger, shared)).toMatchObject({ status: "committed", firstSequence: 2 });
    expect(memory.record?.writers).toBeUndefined();
    expect(ledger.view()).toMatchObject({ warning: undefined });
  });

  test.each(["with", "without"])("a restart %s a memory keeps the set", async (how) => {
    const options = how === "with" ? { memory } : {};
    const before = await startNode("first", options);
    await before.openTopic(parseTopicName("before"), unaborted);
    const { writers } = before.view().facts;
    expect(writers).toEqual(expect.any(Number));
    await before.stop();
    const after = await startNode("first", options);
    const topic = parseTopicName("after");
    await Promise.all([after.openTopic(topic, unaborted), after.openTopic(parseTopicName("beside"), unaborted)]);
    expect(after.view().facts["writers"]).toBe(writers);
    expect(await sentBy("first")).toBe(4);
    await harnessOf("first").stranger.publish([batchOf(after, topic)]);
    expect(await publish(after, topic)).toMatchObject({ status: "committed", firstSequence: 1 });
  });

  test("the first node adds the other nodes as members at once, and later nodes when they join", async () => {
    memory.signers = [addressOf("first"), addressOf("second")];
    const first = await startNode("first", { memory });
    const ours = parseTopicName("ours");
    await first.openTopic(ours, unaborted);
    expect(await sentBy("first")).toBe(3);
    const options = { memory, registry: first.registryAddress };
    const second = await startNode("second", options);
    await second.openTopic(parseTopicName("second"), unaborted);
    expect(await publish(second, ours)).toMatchObject({ status: "committed", firstSequence: 1 });

    const third = await startNode("third", options);
    await expect(third.openTopic(parseTopicName("third"), unaborted)).rejects.toMatchObject({
      code: 100113,
      message: expect.stringContaining(`the signer ${addressOf("third")} may not write to this group's topics yet`),
    });
    expect(third.view().warning).toContain(addressOf("third"));
    expect(await publish(third, ours)).toMatchObject({ status: "rejected", reason: "not-a-writer" });
    memory.signers = [...memory.signers, addressOf("third")];
    await until(async () => third.view().warning === undefined);
    await third.openTopic(parseTopicName("third"), unaborted);
    expect(await publish(third, ours)).toMatchObject({ status: "committed", firstSequence: 2 });
  });

  test("an account in the setting `writers` may write, even if it is not a signer of the group", async () => {
    const ledger = await startNode("first", {
      writers: [new Signer(testKey(`stranger to ${keyOf("first")}`)).address],
    });
    const ours = parseTopicName("ours");
    await ledger.openTopic(ours, unaborted);
    await harnessOf("first").stranger.publish([batchOf(ledger, ours)]);
    expect(await publish(ledger, ours)).toMatchObject({ status: "committed", firstSequence: 2 });
  });

  test("an account that is added to `writers` may write after a restart, before any topic is opened", async () => {
    const before = await startNode("first", { memory });
    const ours = parseTopicName("ours");
    await before.openTopic(ours, unaborted);
    await before.stop();
    const account = new Signer(testKey(`stranger to ${keyOf("first")}`)).address;
    const ledger = await startNode("first", { memory, writers: [account] });
    await until(async () => (await sentBy("first")) === 4);
    await harnessOf("first").stranger.publish([batchOf(ledger, ours)]);
    expect(await publish(ledger, ours)).toMatchObject({ status: "committed", firstSequence: 2 });
  });

  test("two nodes that open topics at once agree on one set", async () => {
    memory.signers = [addressOf("first"), addressOf("second")];
    const first = await startNode("first", { memory });
    const second = await startNode("second", { memory, registry: first.registryAddress });
    await Promise.all([
      first.openTopic(parseTopicName("one"), unaborted),
      second.openTopic(parseTopicName("two"), unaborted),
    ]);
    expect(first.view().facts["writers"]).toBe(memory.record?.writers?.number);
    expect(second.view().facts["writers"]).toBe(memory.record?.writers?.number);
    expect(await publish(second, parseTopicName("one"))).toMatchObject({ status: "committed" });
    expect(await publish(first, parseTopicName("two"))).toMatchObject({ status: "committed" });
  });

  test("a member that was removed cannot open, publish or close", async () => {
    memory.signers = [addressOf("first"), addressOf("second")];
    const first = await startNode("first", { memory });
    const ours = parseTopicName("ours");
    await first.openTopic(ours, unaborted);
    const second = await startNode("second", { memory, registry: first.registryAddress });
    await second.openTopic(parseTopicName("early"), unaborted);
    const args = [memory.record?.writers?.number ?? 0, addressOf("second"), false] as const;
    const remove = encodeFunctionData({ abi: topicRegistryAbi, functionName: "setWriter", args });
    await second.stop();
    await stopAndSend(first, fromHex(remove));
    const again = await startNode("second", { memory, registry: first.registryAddress });
    await expect(again.openTopic(parseTopicName("late"), unaborted)).rejects.toMatchObject({ code: 100113 });
    await expect(again.closeTopic(ours, unaborted)).rejects.toMatchObject({ code: 100113 });
    expect(await publish(again, ours)).toMatchObject({ status: "rejected", reason: "not-a-writer" });
  });

  test("a signer that is removed while it opens a topic gets 100113, not 200202", async () => {
    memory.signers = [addressOf("first"), addressOf("second")];
    const { stranger } = harnessOf("first");
    const operator = new Signer(testKey(`stranger to ${keyOf("first")}`)).address;
    const first = await startNode("first", { memory, writers: [operator] });
    await first.openTopic(parseTopicName("ours"), unaborted);
    const provider = new InterceptedProvider(world.provider);
    const second = await startNode("second", { provider, memory, registry: first.registryAddress });
    const args = [memory.record?.writers?.number ?? 0, addressOf("second"), false] as const;
    const remove = encodeFunctionData({ abi: topicRegistryAbi, functionName: "setWriter", args });
    provider.current = async ({ method }, pass) => {
      if (method === "eth_sendRawTransaction") await stranger.send(fromHex(remove), first.registryAddress);
      return pass();
    };
    await expect(second.openTopic(parseTopicName("late"), unaborted)).rejects.toMatchObject({ code: 100113 });
    expect(second.view().warning).toContain(addressOf("second"));
  });

  /** Stops a node and sends a transaction with its key, as an operator would. */
  async function stopAndSend(ledger: EvmLedger, data: Uint8Array): Promise<void> {
    await ledger.stop();
    const options = { signer: new Signer(testKey(keyOf("first"))), registry: async () => ledger.registryAddress };
    await new Stranger(world.provider, options).send(data, ledger.registryAddress);
  }

  test.each([0, 1, 20])(
    "the gas formulas cover a set with %i further members, its topics and its batches",
    async (others) => {
      memory.signers = [addressOf("second"), ...Array.from({ length: others }, (_, index) => numbered(index + 1))];
      const first = await startNode("first", { memory });
      const ours = parseTopicName("ours");
      await first.openTopic(ours, unaborted);
      const [deployed, set, opened] = await usedGas("first");
      expect(deployed).toBeDefined();
      expect(writersGas(others + 1)).toBeGreaterThanOrEqual(set ?? 0);
      expect(writersGas(others + 1)).toBeLessThan(2 * (set ?? 0));
      expect(openGas([ours])).toBeGreaterThanOrEqual(opened ?? Number.MAX_VALUE);
      const second = await startNode("second", { memory, registry: first.registryAddress });
      await second.openTopic(parseTopicName("two"), unaborted);
      await publish(second, ours);
      const [openedByMember, published] = await usedGas("second");
      expect(openGas([ours])).toBeGreaterThanOrEqual(openedByMember ?? Number.MAX_VALUE);
      expect(publishGas(0, 1)).toBeGreaterThanOrEqual((published ?? Number.MAX_VALUE) - calldataGas);
    },
  );

  /** Gas of the calldata of a batch with one event: about 400 bytes, most of them zero. */
  const calldataGas = 6_000;

  /** Gas of each transaction that the node has sent, oldest first. */
  async function usedGas(node: Node): Promise<readonly number[]> {
    const head = Number(await world.provider.request({ method: "eth_blockNumber" }));
    const used: number[] = [];
    for (let number = 0; number <= head; number += 1) {
      const params = [`0x${number.toString(16)}`, true];
      const block = await world.provider.request({ method: "eth_getBlockByNumber", params });
      const { transactions } = block as { transactions: readonly { hash: string; from: string }[] }; // A block.
      for (const { hash } of transactions.filter(({ from }) => from.toLowerCase() === addressOf(node))) {
        const receipt = await world.provider.request({ method: "eth_getTransactionReceipt", params: [hash] });
        used.push(Number((receipt as { gasUsed: string }).gasUsed)); // A receipt.
      }
    }
    return used;
  }

  test("everyone may publish to a topic that a foreign account opened first", async () => {
    const ledger = await startNode("first");
    const { stranger } = harnessOf("first");
    const taken = parseTopicName("taken");
    await stranger.send(openCalldata([taken]), ledger.registryAddress);
    await ledger.openTopic(taken, unaborted);
    await stranger.publish([batchOf(ledger, taken)]);
    expect(await publish(ledger, taken)).toMatchObject({ status: "committed", firstSequence: 2 });
  });
});

function numbered(index: number): Address {
  return `0x${index.toString(16).padStart(40, "0")}`;
}

function topicOf(ledger: EvmLedger, name: TopicName): Address {
  return toHex(topicAddress({ registry: fromHex(ledger.registryAddress), name }, keccak256));
}

function batchOf(ledger: EvmLedger, topic: TopicName) {
  const events = [{ content: Buffer.from("event"), extensions: [] }];
  return toOutgoingBatch({ topic, address: topicOf(ledger, topic), events });
}

async function publish(ledger: EvmLedger, topic: TopicName): Promise<BatchOutcome | undefined> {
  return (await ledger.append([batchOf(ledger, topic)], unaborted))[0];
}
