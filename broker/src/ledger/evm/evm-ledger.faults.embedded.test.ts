import { type EmbeddedChain, startEmbeddedChain } from "@stele/chain";
import { Signer, toHex } from "@stele/eth/node";
import { encodeEvents, merkleRoot } from "@stele/wire";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { EventPayload } from "../../domain/event.ts";
import type { Address } from "../../domain/topic.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import type { BatchOutcome, LedgerEntry } from "../../ports/ledger.ts";
import { toOutgoingBatch } from "../../ports/testing/outgoing-batch.ts";
import type { EvmLedger } from "./evm-ledger.ts";
import type { EvmLedgerOptions } from "./evm-ledger-options.ts";
import { logSignatures } from "./read/parse-log.ts";
import { openCalldata } from "./registry/registry.ts";
import { createEvmHarness, type EvmHarness, testKey } from "./testing/evm-harness.ts";
import {
  connectionLost,
  connectionRefused,
  InterceptedProvider,
  type Interceptor,
  passAll,
} from "./testing/intercepted-provider.ts";
import { Stranger } from "./testing/stranger.ts";

const keysMax = 60;
const transactionBytesMax = 40_000;
const unaborted = new AbortController().signal;
const name = parseTopicName("faults");

let chain: EmbeddedChain;
let harnesses = 0;
let harness: EvmHarness;
let provider: InterceptedProvider;

beforeAll(async () => {
  const names = Array.from({ length: keysMax }, (_, index) => [`key ${index}`, `stranger to key ${index}`]).flat();
  const genesisAccounts = names.map((key) => new Signer(testKey(key)).address);
  chain = await startEmbeddedChain({ file: ":memory:", chainId: 1337, genesisAccounts, transactionBytesMax });
});

afterAll(async () => {
  await chain.stop();
});

beforeEach(() => {
  harnesses += 1;
  provider = new InterceptedProvider(chain);
  harness = createEvmHarness(provider, `key ${harnesses}`);
});

const event = (text: string): EventPayload => ({ content: Buffer.from(text), extensions: [] });

/** Runs `use` with a started ledger that has one topic. */
async function withLedger(
  use: (
    ledger: EvmLedger,
    append: (text: string) => Promise<BatchOutcome | undefined>,
    address: Address,
  ) => Promise<void>,
  options: Partial<EvmLedgerOptions> = {},
): Promise<void> {
  const ledger = harness.createLedger(options);
  await ledger.start();
  try {
    await ledger.openTopic(name, unaborted);
    const [opened] = await entries(ledger);
    const address = opened?.address ?? "0x";
    const append = async (text: string): Promise<BatchOutcome | undefined> =>
      (await ledger.append([toOutgoingBatch({ topic: name, address, events: [event(text)] })], unaborted))[0];
    await use(ledger, append, address);
  } finally {
    await ledger.stop();
  }
}

async function entries(ledger: EvmLedger): Promise<LedgerEntry[]> {
  const head = await ledger.finalBlockNumber(unaborted);
  const found: LedgerEntry[] = [];
  for await (const step of ledger.follow(undefined, unaborted)) {
    const blocks = step.kind === "blocks" ? step.blocks : [];
    found.push(...blocks.flatMap((block) => block.entries));
    if ((blocks.at(-1)?.number ?? 0) >= head) break;
  }
  return found;
}

async function sequences(ledger: EvmLedger): Promise<number[]> {
  return (await entries(ledger)).flatMap((entry) => (entry.kind === "events-committed" ? [entry.firstSequence] : []));
}

/** Passes the first `times` requests of one method to `treat`, and lets the others through. */
function first(times: number, method: string, treat: Interceptor): Interceptor {
  let left = times;
  return async (request, pass) => {
    if (request.method !== method || left === 0) return pass();
    left -= 1;
    return treat(request, pass);
  };
}

describe("append", () => {
  test("append commits an event once even if the answer to eth_sendRawTransaction is lost", async () => {
    await withLedger(async (ledger, append) => {
      provider.current = first(1, "eth_sendRawTransaction", async (_, pass) => {
        await pass();
        throw connectionLost();
      });
      expect(await append("a")).toMatchObject({ status: "committed", firstSequence: 1 });
      expect(await append("b")).toMatchObject({ status: "committed", firstSequence: 2 });
      expect(await sequences(ledger)).toEqual([1, 2]);
    });
  });

  test("append commits four calls in order, even if the first two sends fail", async () => {
    await withLedger(async (ledger, append) => {
      provider.current = first(2, "eth_sendRawTransaction", async () => {
        throw connectionLost();
      });
      const outcomes = await Promise.all(["a", "b", "c", "d"].map(append));
      expect(outcomes.map((outcome) => outcome?.status === "committed" && outcome.firstSequence)).toEqual([1, 2, 3, 4]);
      expect(await sequences(ledger)).toEqual([1, 2, 3, 4]);
    });
  });

  test("append fails with 200205 while the endpoint is unreachable, and commits later calls once the endpoint is back", async () => {
    await withLedger(
      async (ledger, append) => {
        provider.current = first(Number.POSITIVE_INFINITY, "eth_sendRawTransaction", async () => {
          throw connectionRefused();
        });
        const answers = await Promise.allSettled([append("a"), append("b")]);
        for (const answer of answers) expect(answer).toMatchObject({ status: "rejected", reason: { code: 200205 } });
        provider.current = passAll;
        expect(await append("c")).toMatchObject({ status: "committed", firstSequence: 1 });
        expect(await sequences(ledger)).toEqual([1]);
      },
      { deadlineMs: 2000 },
    );
  });

  test("append fails with 200201 if the endpoint answers no send; once it answers, the ledger commits that event before the next one", async () => {
    await withLedger(
      async (ledger, append) => {
        provider.current = first(Number.POSITIVE_INFINITY, "eth_sendRawTransaction", async () => {
          throw connectionLost();
        });
        await expect(append("a")).rejects.toMatchObject({ code: 200201 });
        provider.current = passAll;
        expect(await append("b")).toMatchObject({ status: "committed", firstSequence: 2 });
        expect(await sequences(ledger)).toEqual([1, 2]);
      },
      { deadlineMs: 3000 },
    );
  });

  test("append fails with 200201 if no block includes its accepted transaction in time; the ledger resends it", async () => {
    await withLedger(
      async (_, append) => {
        provider.current = first(Number.POSITIVE_INFINITY, "eth_sendRawTransaction", async () => "0x");
        await expect(append("a")).rejects.toMatchObject({ code: 200201 });
        provider.current = passAll;
        const outcomes = await Promise.all([append("b"), append("c")]);
        expect(outcomes.map((outcome) => outcome?.status === "committed" && outcome.firstSequence)).toEqual([2, 3]);
      },
      { deadlineMs: 3500 },
    );
  });

  test("append learns its outcome from the receipt if the logs do not appear", async () => {
    await withLedger(async (_, append) => {
      provider.current = first(1, "eth_getLogs", async () => []);
      expect(await append("a")).toMatchObject({ status: "committed", firstSequence: 1 });
    });
  });

  test("append learns its outcome even if notifications of new blocks stop", async () => {
    await withLedger(async (_, append) => {
      provider.dropsNotifications = true;
      expect(await append("a")).toMatchObject({ status: "committed", firstSequence: 1 });
    });
  });

  test("append commits under another nonce if another sender used the next nonce", async () => {
    await withLedger(async (ledger, append) => {
      const twin = new Stranger(chain, {
        signer: new Signer(testKey(`key ${harnesses}`)),
        registry: async () => ledger.registryAddress,
      });
      await append("a");
      await twin.open("twin");
      const outcomes = await Promise.all(["b", "c", "d"].map(append));
      const places = outcomes.map((outcome) => (outcome?.status === "committed" ? outcome.firstSequence : 0));
      expect(places.toSorted((left, right) => left - right)).toEqual([2, 3, 4]);
      expect(await sequences(ledger)).toEqual([1, 2, 3, 4]);
    });
  });

  test("append fails with 200201 if its caller aborts after the transaction was accepted; the next append succeeds", async () => {
    await withLedger(async (ledger, append, address) => {
      const caller = new AbortController();
      const batches = [toOutgoingBatch({ topic: name, address, events: [event("a")] })];
      provider.current = first(1, "eth_getLogs", async (_, pass) => {
        caller.abort();
        return pass();
      });
      await expect(ledger.append(batches, caller.signal)).rejects.toMatchObject({ code: 200201 });
      expect(await append("b")).toMatchObject({ status: "committed", firstSequence: 2 });
      expect(await sequences(ledger)).toEqual([1, 2]);
    });
  });

  test("append and openTopic fail with 200205 if the chain disappears, and stop returns", async () => {
    const ledger = harness.createLedger({ deadlineMs: 600 });
    await ledger.start();
    provider.dropsNotifications = true;
    provider.current = async () => {
      throw connectionRefused();
    };
    const batches = [toOutgoingBatch({ topic: name, address: ledger.registryAddress, events: [event("a")] })];
    const answers = Promise.allSettled([ledger.append(batches, unaborted), ledger.openTopic(name, unaborted)]);
    await ledger.stop();
    for (const answer of await answers) expect(answer).toMatchObject({ reason: { code: 200205 } });
  });

  test("append returns too-large for a batch above the limit, commits its neighbours and lowers the limit", async () => {
    await withLedger(async (ledger, append) => {
      const big = "x".repeat(transactionBytesMax);
      const { bytesPerTransactionMax } = ledger.limits;
      const answers = await Promise.all(["a", big, "b", big, "c", big].map(append));
      expect(answers.map((answer) => answer?.status)).toEqual([
        "committed",
        "too-large",
        "committed",
        "too-large",
        "committed",
        "too-large",
      ]);
      expect(ledger.limits.bytesPerTransactionMax).toBeLessThan(bytesPerTransactionMax);
      expect(await append("d")).toMatchObject({ firstSequence: 4 });
      expect(await sequences(ledger)).toEqual([1, 2, 3, 4]);
    });
  });
});

describe("reading", () => {
  test("follow returns every event even if ranges are refused and connections are lost", async () => {
    await withLedger(async (ledger, append) => {
      for (let index = 0; index < 12; index += 1) await append(`${index}`);
      let requests = 0;
      provider.current = async (request, pass) => {
        if (request.method !== "eth_getLogs") return pass();
        requests += 1;
        const [{ fromBlock, toBlock }] = request.params as [{ fromBlock: string; toBlock: string }]; // The ledger sends these.
        if (Number(toBlock) - Number(fromBlock) > 2)
          throw Object.assign(new Error("block range too large"), { code: -32000 });
        if (requests % 3 === 0) throw connectionLost();
        return pass();
      };
      const late = harness.createLedger();
      await late.start();
      expect(await sequences(late)).toEqual(Array.from({ length: 12 }, (_, index) => index + 1));
      await late.stop();
      expect(await sequences(ledger)).toHaveLength(12);
    });
  });

  test("follow returns every event from an endpoint that cannot notify", async () => {
    harness = createEvmHarness({ request: async (request) => chain.request(request) }, `key ${harnesses}`);
    await withLedger(async (ledger, append) => {
      await Promise.all(["a", "b", "c"].map(append));
      expect(await sequences(ledger)).toEqual([1, 2, 3]);
    });
  });

  test("a batch with a wrong root or a wrong count is malformed, even if its events are those of a valid batch", async () => {
    await withLedger(async (ledger, append, address) => {
      await append("ours");
      const events = encodeEvents([event("ours")]);
      const other = merkleRoot(encodeEvents([event("other")]));
      await harness.stranger.publish([
        { address, count: 1, events, eventsRoot: other },
        { address, count: 2, events, eventsRoot: merkleRoot(events) },
        { address, count: 1, events },
      ]);
      const kinds = (await entries(ledger)).map(({ kind }) => kind);
      expect(kinds).toEqual([
        "topic-opened",
        "events-committed",
        "events-malformed",
        "events-malformed",
        "events-committed",
      ]);
    });
  });

  test("a name that is not UTF-8 blocks no other topic, and a batch that declares billions of events moves no sequence", async () => {
    await withLedger(async (ledger, append, address) => {
      const calldata = openCalldata(["abc"]);
      calldata.fill(0xff, calldata.indexOf("abc"), calldata.indexOf("abc") + 3);
      await harness.stranger.send(calldata, ledger.registryAddress);
      const events = encodeEvents([event("a")]);
      await harness.stranger.publish([{ address, count: 2 ** 32 - 1, events }]);
      expect(await append("a")).toMatchObject({ status: "committed", firstSequence: 1 });
      const [, opened, committed] = await entries(ledger);
      expect(opened).toMatchObject({ kind: "topic-opened", name: "\ufffd\ufffd\ufffd" });
      expect(committed).toMatchObject({ kind: "events-committed", firstSequence: 1, count: 1 });
    });
  });

  test("a stranger's batch beyond the limits is malformed, and other batches are read", async () => {
    await withLedger(async (ledger, append, address) => {
      const long: EventPayload = { content: Buffer.from("a"), extensions: [["svc-a", "a".repeat(20_000)]] };
      const unprefixed: EventPayload = { content: Buffer.from("a"), extensions: [["destination", "/queue"]] };
      for (const bad of [long, unprefixed]) {
        await harness.stranger.publish([{ address, count: 2, events: encodeEvents([event("good"), bad]) }]);
      }
      await append("after");
      const [, first, second, third] = await entries(ledger);
      expect(first).toMatchObject({ kind: "events-malformed", fault: "beyond-limits", firstSequence: 1, count: 2 });
      expect(second).toMatchObject({ reason: expect.stringContaining("does not begin with svc-"), firstSequence: 3 });
      expect(third).toMatchObject({ kind: "events-committed", firstSequence: 5 });
    });
  });

  test("follow ignores logs of other contracts with the same signatures", async () => {
    await withLedger(async (ledger, append) => {
      for (const signature of logSignatures) await deployForger(signature);
      await append("a");
      expect((await entries(ledger)).map(({ kind }) => kind)).toEqual(["topic-opened", "events-committed"]);
      const late = harness.createLedger();
      await late.start();
      expect((await entries(late)).map(({ kind }) => kind)).toEqual(["topic-opened", "events-committed"]);
      await late.stop();
    });
  });
});

describe("starting", () => {
  test("start finds the registry again without configuration, and deploys no second one", async () => {
    const one = harness.createLedger();
    await one.start();
    const two = harness.createLedger();
    await two.start();
    expect(two.registryAddress).toBe(one.registryAddress);
    const three = harness.createLedger({ registry: one.registryAddress });
    await three.start();
    expect(three.registryAddress).toBe(one.registryAddress);
    for (const ledger of [one, two, three]) await ledger.stop();
  });

  test("start refuses a registry's address without code", async () => {
    const registry = toHex(new Uint8Array(20).fill(1));
    await expect(harness.createLedger({ registry }).start()).rejects.toThrow(/no topic registry at 0x0101/);
  });

  test("start refuses another contract at the registry's address", async () => {
    const code = Buffer.from("600a600c600039600a6000f3602a60005260206000f3", "hex");
    const registry = (await harness.stranger.send(code)) ?? "0x";
    await expect(harness.createLedger({ registry }).start()).rejects.toThrow(/no topic registry/);
  });

  test("start fails with 200205 if the endpoint does not answer", async () => {
    provider.current = async () => {
      throw connectionLost();
    };
    await expect(harness.createLedger().start()).rejects.toMatchObject({ code: 200205 });
  });

  test("start fails with 200202 if the key's account has no funds", async () => {
    const poor = createEvmHarness(chain, "nobody's key").createLedger();
    await expect(poor.start()).rejects.toMatchObject({ code: 200202, hints: [/balance/] });
  });

  test("start refuses a key with too many transactions to search", async () => {
    const key = testKey(`key ${harnesses}`);
    const sender = new Stranger(chain, { signer: new Signer(key), registry: async () => "0x" });
    for (let index = 0; index < 16; index += 1) await sender.send(new Uint8Array(0), new Signer(key).address);
    await expect(harness.createLedger().start()).rejects.toThrow(
      /finds only a registry that one of the first 16 created/,
    );
  });
});

/** Deploys a contract whose creation writes one log with this signature, four topics and 128 bytes of zeros. */
async function deployForger(signature: string): Promise<void> {
  const zero = "6000";
  const code = `${zero}${zero}${zero}7f${signature.slice(2)}60806000a400`;
  await harness.stranger.send(Buffer.from(code, "hex"));
}
