import { Signer, toQuantity } from "@stele/eth/node";
import { decodeEvents, encodeEvents } from "@stele/wire";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import type { Address, Hash } from "../../domain/topic.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import type { BlockRef, LedgerBlock } from "../../ports/ledger.ts";
import { toOutgoingBatch } from "../../ports/testing/outgoing-batch.ts";
import type { EvmLedger } from "./evm-ledger.ts";
import type { EvmLedgerOptions } from "./evm-ledger-options.ts";
import { logSignatures } from "./read/parse-log.ts";
import { type Anvil, startAnvil } from "./testing/anvil.ts";
import { createEvmHarness, type EvmHarness, testKey } from "./testing/evm-harness.ts";
import { InterceptedProvider, passAll } from "./testing/intercepted-provider.ts";

const unaborted = new AbortController().signal;
const name = parseTopicName("a");
let anvil: Anvil;
let harness: EvmHarness;
let provider: InterceptedProvider;
let count = 0;

beforeAll(async () => {
  anvil = await startAnvil();
});
afterAll(() => anvil.stop());
beforeEach(async () => {
  count += 1;
  const key = `reorganisation ${count}`;
  for (const who of [key, `stranger to ${key}`]) {
    await ask("anvil_setBalance", new Signer(testKey(who)).address, "0xffffffffffffffffffffff");
  }
  provider = new InterceptedProvider(anvil.provider);
  harness = createEvmHarness(provider, key);
});

async function ask(method: string, ...params: readonly unknown[]): Promise<unknown> {
  return anvil.provider.request({ method, params });
}

const mine = (blocks: number): Promise<unknown> => ask("anvil_mine", `0x${blocks.toString(16)}`);

/** A follower's view of the chain, without removed blocks. */
class Copy {
  blocks: LedgerBlock[] = [];
  reorganisations = 0;
  readonly #ledger: EvmLedger;

  constructor(ledger: EvmLedger) {
    this.#ledger = ledger;
  }

  get contents(): string[] {
    return this.blocks
      .flatMap((block) => block.entries)
      .flatMap((entry) => (entry.kind === "events-committed" ? decodeEvents(entry.events) : []))
      .map(({ content }) => Buffer.from(content).toString());
  }

  get #head(): BlockRef | undefined {
    return this.blocks.at(-1);
  }

  /** Follows until the copy has all blocks that are final now, and `enough` returns true. */
  async catchUp(enough: (copy: Copy) => boolean = () => true): Promise<void> {
    for (;;) {
      if ((await this.#isCaughtUp()) && enough(this)) return;
      const controller = new AbortController();
      for await (const step of this.#ledger.follow(this.#head, controller.signal)) {
        if (step.kind === "reorganised") {
          this.reorganisations += 1;
          await this.#cutBack();
        } else this.blocks.push(...step.blocks);
        if ((await this.#isCaughtUp()) && enough(this)) break;
      }
      controller.abort();
    }
  }

  /** Whether the copy ends with the newest final block. Asks the chain itself, since the ledger may learn of a reorg later. */
  async #isCaughtUp(): Promise<boolean> {
    const final = await this.#ledger.finalBlockNumber(unaborted);
    if (this.#head === undefined || this.#head.number < final) return false;
    const block = (await ask("eth_getBlockByNumber", toQuantity(this.#head.number), false)) as { hash: Hash } | null; // A block.
    return block?.hash === this.#head.hash;
  }

  async #cutBack(): Promise<void> {
    while (this.#head !== undefined) {
      if ((await this.#ledger.findBlockHash(this.#head.number, unaborted)) === this.#head.hash) return;
      this.blocks.pop();
    }
  }
}

async function withTopic(
  use: (parts: { ledger: EvmLedger; copy: Copy; publish: (text: string) => Promise<void> }) => Promise<void>,
  options: Partial<EvmLedgerOptions> = {},
): Promise<void> {
  const ledger = harness.createLedger(options);
  await ledger.start();
  try {
    await harness.stranger.open(name);
    await mine(5);
    const copy = new Copy(ledger);
    await copy.catchUp();
    const opened = copy.blocks.flatMap(({ entries }) => entries).find(({ kind }) => kind === "topic-opened");
    const address: Address = opened?.address ?? "0x";
    const publish = async (text: string): Promise<void> => {
      const events = encodeEvents([{ content: Buffer.from(text), extensions: [] }]);
      await harness.stranger.publish([{ address, count: 1, events }]);
    };
    await use({ ledger, copy, publish });
  } finally {
    provider.current = passAll;
    await ledger.stop();
  }
}

describe("a chain with a reorg", () => {
  test("a chain with a reorg is followed along its new branch, even if this branch is as long as the old one", async () => {
    await withTopic(async ({ copy, publish }) => {
      for (const text of ["1", "2", "3"]) await publish(text);
      await copy.catchUp();
      expect(copy.contents).toEqual(["1", "2", "3"]);
      await ask("anvil_reorg", 2, []);
      await copy.catchUp();
      expect(copy.contents).toEqual(["1"]);
      expect(copy.reorganisations).toBe(1);
      await publish("4");
      await copy.catchUp();
      expect(copy.contents).toEqual(["1", "4"]);
    });
  });

  test("a chain is followed if it becomes shorter and then grows by other blocks", async () => {
    await withTopic(async ({ copy, publish }) => {
      await publish("1");
      await mine(3);
      for (const text of ["2", "3"]) await publish(text);
      await copy.catchUp();
      await ask("anvil_rollback", 4);
      await publish("other");
      await copy.catchUp();
      expect(copy.contents).toEqual(["1", "other"]);
    });
  });

  test("the ledger reports no reorg that is shallower than the confirmations", async () => {
    const first = harness.createLedger();
    await first.start();
    await first.stop();
    await mine(3);
    await withTopic(
      async ({ copy, publish }) => {
        await publish("1");
        await mine(3);
        for (const text of ["2", "3"]) await publish(text);
        await copy.catchUp();
        expect(copy.contents).toEqual(["1"]);
        await ask("anvil_reorg", 3, []);
        await mine(4);
        await publish("4");
        await mine(4);
        await copy.catchUp((now) => now.contents.length > 1);
        expect(copy.contents).toEqual(["1", "4"]);
        expect(copy.reorganisations).toBe(0);
      },
      { finality: 3 },
    );
  });

  test("the ledger reports a reorg to a reader that resumes after a removed block", async () => {
    await withTopic(async ({ ledger, copy, publish }) => {
      await publish("1");
      await copy.catchUp();
      const gone = copy.blocks.at(-1);
      await ask("anvil_reorg", 3, []);
      await mine(2);
      const late = harness.createLedger();
      await late.start();
      for await (const step of late.follow(gone, unaborted)) {
        expect(step.kind).toBe("reorganised");
        break;
      }
      await late.stop();
      expect(await ledger.findBlockHash(gone?.number ?? 0, unaborted)).not.toBe(gone?.hash);
    });
  });
});

/** The newest block of a chain node that lags three blocks. */
async function blockBehind(): Promise<unknown> {
  const head = (await ask("eth_blockNumber")) as string; // A quantity.
  return ask("eth_getBlockByNumber", `0x${(Number(head) - 3).toString(16)}`, false);
}

describe("an endpoint with lagging chain nodes", () => {
  test("the ledger reports every event and no reorg from an endpoint with lagging chain nodes", async () => {
    await withTopic(async ({ copy, publish }) => {
      let turn = 0;
      provider.current = async ({ method, params = [] }, pass) => {
        turn = (turn * 75 + 74) % 65_537;
        if (turn % 2 === 0) return pass();
        if (method === "eth_getBlockByNumber" && params[0] === "latest") return blockBehind();
        const isNew = turn % 3 === 0 && (method === "eth_getLogs" || method === "eth_getBlockByNumber");
        if (isNew && method === "eth_getLogs") throw Object.assign(new Error("unknown block"), { code: -32000 });
        return isNew ? null : pass();
      };
      for (let index = 0; index < 12; index += 1) await publish(`${index}`);
      await copy.catchUp((now) => now.contents.length === 12);
      expect(copy.contents).toEqual(Array.from({ length: 12 }, (_, index) => `${index}`));
      expect(copy.reorganisations).toBe(0);
    });
  });

  test("the endpoint is asked again for a block that one chain node announced and another lacks", async () => {
    await withTopic(async ({ ledger, copy }) => {
      const { number = 0, hash } = copy.blocks.at(-1) ?? {};
      let behind = 0;
      provider.current = async ({ method, params = [] }, pass) =>
        method === "eth_getBlockByNumber" && params[0] !== "latest" && ++behind < 5 ? null : pass();
      expect(await ledger.findBlockHash(number, unaborted)).toBe(hash);
      expect(await ledger.findBlockHash(number + 1, unaborted)).toBeUndefined();
      expect(behind).toBe(6);
    });
  });
});

test("the endpoint is asked again for logs that it did not return although the block's header promises them", async () => {
  await withTopic(async ({ copy, publish }) => {
    const asked = new Set<unknown>();
    provider.current = async ({ method, params = [] }, pass) => {
      const { blockHash } = (method === "eth_getLogs" ? params[0] : {}) as { blockHash?: string }; // The ledger sends these.
      if (blockHash === undefined || asked.has(blockHash)) return pass();
      asked.add(blockHash);
      return [];
    };
    for (const text of ["1", "2", "3"]) await publish(text);
    await copy.catchUp();
    expect(asked.size).toBeGreaterThanOrEqual(3);
    expect(copy.contents).toEqual(["1", "2", "3"]);
  });
});

describe("a block whose logs the endpoint refuses", () => {
  type Filter = { readonly topics: readonly [readonly string[]]; readonly blockHash?: string };
  /** Whether a request asks for one kind of log, or only for rejections of our own calls. */
  const isSmall = ({ topics }: Filter): boolean => topics.length > 1 || topics[0].length === 1;
  const withoutRefusals = ({ topics }: Filter): boolean => topics.length > 1 || topics[0].length < logSignatures.length;

  test.each<readonly [string, { code: number; message: string }, (filter: Filter) => boolean]>([
    [
      "without rejections of other accounts if it has too many logs",
      { code: -32005, message: "query returned more than 10000 results" },
      withoutRefusals,
    ],
    [
      "one kind of log at a time if the endpoint's reason for a refusal is unknown",
      { code: -32000, message: "no, really" },
      isSmall,
    ],
    ["one kind of log at a time if the endpoint times out", { code: -32000, message: "timed out" }, isSmall],
    [
      "by number if the endpoint cannot search by hash",
      { code: -32602, message: "invalid argument 0: blockHash" },
      ({ blockHash }) => blockHash === undefined,
    ],
  ])("reads the logs of a block %s", async (_, refusal, isTaken) => {
    await withTopic(async ({ copy, publish, ledger }) => {
      await ledger.openTopic(parseTopicName("another"), unaborted);
      provider.current = async ({ method, params }, pass) => {
        if (method !== "eth_getLogs" || isTaken((params as [Filter])[0])) return pass(); // The ledger sends these.
        throw Object.assign(new Error(refusal.message), { code: refusal.code });
      };
      for (const text of ["1", "2", "3"]) await publish(text);
      await copy.catchUp();
      expect(copy.contents).toEqual(["1", "2", "3"]);
    });
  });

  test("the outage names a block that stays unreadable, and publishes fail with 200205 until the block is read", async () => {
    await withTopic(async ({ copy, publish, ledger }) => {
      await publish("1");
      await copy.catchUp();
      let refused = 0;
      provider.current = async ({ method }, pass) => {
        if (method !== "eth_getLogs") return pass();
        refused += 1;
        throw Object.assign(new Error("answer too large"), { code: -32000 });
      };
      const { number = 0 } = copy.blocks.at(-1) ?? {};
      await publish("2");
      await vi.waitUntil(() => ledger.view().outage !== undefined, { timeout: 20_000 });
      expect(ledger.view().outage?.reason).toMatch(new RegExp(`^cannot read block ${number + 1}: .*answer too large`));
      const more = [toOutgoingBatch({ topic: name, address: ledger.registryAddress, events: [] })];
      await expect(ledger.append(more, unaborted)).rejects.toMatchObject({
        code: 200205,
        message: expect.stringContaining("cannot read block"),
      });
      expect(refused).toBeLessThan(40);
      provider.current = passAll;
      await copy.catchUp();
      expect(ledger.view().outage).toBeUndefined();
      expect(copy.contents).toEqual(["1", "2"]);
    });
  });
});
