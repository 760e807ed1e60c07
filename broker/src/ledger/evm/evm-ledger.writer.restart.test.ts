import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { Signer, toHex } from "@stele/eth/node";
import { afterEach, describe, expect, test } from "vitest";
import { parseTopicName } from "../../domain/topic-name.ts";
import { createDeferred } from "../../lib/deferred.ts";
import { silentLogger } from "../../lib/logger.ts";
import { createSystemClock } from "../../lib/system/clock.ts";
import type { Clock } from "../../ports/clock.ts";
import { connectionLost, passAll } from "./testing/intercepted-provider.ts";
import { TestJournal, until, type Writer, WriterWorld } from "./testing/writer-world.ts";

let world: WriterWorld;

afterEach(async () => {
  await world.stop();
});

const textsOf = (count: number, prefix: string): string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}${index}`);

const journaled = async (): Promise<readonly number[]> => {
  const entries = await world.journal.listTransactions("1", new Signer(world.privateKey).address);
  return entries.map(({ nonce }) => nonce);
};

/** Appends, stops the ledger once `isReady`, and expects 200201 for every caller. */
async function abandonUnderWay(
  writer: Writer,
  texts: readonly string[],
  isReady: () => Promise<boolean>,
): Promise<void> {
  const answers = Promise.allSettled(texts.map((text) => writer.append(text)));
  await until(isReady);
  await writer.abandon();
  for (const answer of await answers) expect(answer).toMatchObject({ reason: { code: 200201 } });
}

/** Loses the connection at each send of a transaction. Returns a function that returns the number of these sends. */
function loseSends({ provider }: WriterWorld): () => number {
  let attempts = 0;
  provider.current = async (request, pass) => {
    if (request.method !== "eth_sendRawTransaction") return pass();
    attempts += 1;
    throw connectionLost();
  };
  return () => attempts;
}

describe("a restarted ledger with a journal", () => {
  test("sends transactions that never reached the endpoint", async () => {
    world = await WriterWorld.start();
    const first = await world.createFirstWriter();
    const attempts = loseSends(world);
    await abandonUnderWay(first, ["a", "b", "c"], async () => (await world.poolSize()) === 0 && attempts() >= 3);
    expect(await world.published()).toEqual([]);
    world.provider.current = passAll;
    const second = await world.createWriter();
    expect(await second.append("d")).toMatchObject({ status: "committed", firstSequence: 4 });
    expect(await world.published()).toEqual(["a", "b", "c", "d"]);
    await second.ledger.stop();
  });

  test("resumes and signs nothing if it may not sign; a later ledger that may sign resumes all transactions", async () => {
    world = await WriterWorld.start();
    const first = await world.createFirstWriter();
    const attempts = loseSends(world);
    await abandonUnderWay(first, ["a", "b"], async () => attempts() >= 3);
    const left = await journaled();
    const sent: string[] = [];
    world.provider.current = async (request, pass) => {
      if (request.method === "eth_sendRawTransaction") sent.push(request.method);
      return pass();
    };
    const restored = await world.createWriter({ maySign: false });
    const refused = { code: 200205, message: expect.stringContaining("stele activate") };
    await expect(restored.append("c")).rejects.toMatchObject(refused);
    await expect(restored.ledger.openTopic(parseTopicName("new"), AbortSignal.timeout(1_000))).rejects.toMatchObject(
      refused,
    );
    await restored.ledger.stop();
    expect([sent, await journaled()]).toEqual([[], left]);
    const second = await world.createWriter();
    expect(await second.append("d")).toMatchObject({ status: "committed", firstSequence: 3 });
    expect(await world.published()).toEqual(["a", "b", "d"]);
    await second.ledger.stop();
  });

  test("resumes transactions in the pool, and resends those that the pool lost", async () => {
    world = await WriterWorld.start();
    const first = await world.createFirstWriter();
    await world.ask("evm_setAutomine", false);
    await abandonUnderWay(first, ["a", "b"], async () => (await world.poolSize()) === 2);
    const second = await world.createWriter();
    await abandonUnderWay(second, ["c", "d"], async () => (await world.poolSize()) === 4);
    await world.ask("anvil_dropAllTransactions");
    await world.ask("evm_setAutomine", true);
    const third = await world.createWriter();
    expect(await third.append("e")).toMatchObject({ status: "committed", firstSequence: 5 });
    expect(await world.published()).toEqual(["a", "b", "c", "d", "e"]);
    await third.ledger.stop();
  });

  test("does not resend transactions included meanwhile, and removes their entries once their blocks are deep", async () => {
    world = await WriterWorld.start();
    const first = await world.createFirstWriter();
    await world.ask("evm_setAutomine", false);
    const texts = textsOf(20, "a");
    await abandonUnderWay(first, texts, async () => (await world.poolSize()) === texts.length);
    await world.ask("evm_setAutomine", true);
    await world.ask("evm_mine");
    expect(await world.published()).toEqual(texts);
    const second = await world.createWriter();
    let sends = 0;
    world.provider.current = async (request, pass) => {
      if (request.method === "eth_sendRawTransaction") sends += 1;
      return pass();
    };
    expect(await second.append("b")).toMatchObject({ firstSequence: 21 });
    expect(sends).toBe(1);
    await until(async () => {
      await world.ask("anvil_mine", "0x40");
      return (await journaled()).length < 16;
    });
    expect(await world.published()).toEqual([...texts, "b"]);
    await second.ledger.stop();
  });

  test("removes an entry whose nonce another sender used meanwhile, and publishes the next event", async () => {
    world = await WriterWorld.start();
    const first = await world.createFirstWriter();
    await world.ask("evm_setAutomine", false);
    await abandonUnderWay(first, ["a"], async () => (await world.poolSize()) === 1);
    await world.ask("anvil_dropAllTransactions");
    await world.ask("evm_setAutomine", true);
    await world.ask("eth_sendRawTransaction", toHex((await world.signForeign()).raw));
    const second = await world.createWriter();
    expect(await second.append("b")).toMatchObject({ firstSequence: 1 });
    await until(async () => !(await journaled()).includes(2));
    expect(await world.published()).toEqual(["b"]);
    await second.ledger.stop();
  });
});

test("fills a nonce gap if the journal and the chain node's pool both lost its transaction", async () => {
  world = await WriterWorld.start();
  const first = await world.createFirstWriter();
  await world.ask("evm_setAutomine", false);
  await abandonUnderWay(first, ["a"], async () => (await world.poolSize()) === 1);
  const second = await world.createWriter({ journal: new TestJournal() });
  const outcome = second.append("b");
  await until(async () => (await world.poolSize()) === 2);
  await world.ask("anvil_dropAllTransactions");
  await world.ask("evm_setAutomine", true);
  expect(await outcome).toMatchObject({ status: "committed", firstSequence: 1 });
  expect(await world.published()).toEqual(["b"]);
  await second.ledger.stop();
});

test("resends the transactions that a deep reorg removed, once", async () => {
  world = await WriterWorld.start();
  const { append, ledger } = await world.createFirstWriter();
  const snapshot = await world.ask("evm_snapshot");
  expect(await Promise.all(["a", "b"].map((text) => append(text)))).toMatchObject([{ firstSequence: 1 }, {}]);
  const release = world.provider.holdSends();
  await world.ask("evm_revert", snapshot);
  await world.ask("anvil_mine", "0x4");
  expect(await world.published()).toEqual([]);
  release();
  await until(async () => (await world.published()).length === 2);
  expect(await append("c")).toMatchObject({ firstSequence: 3 });
  expect(await world.published()).toEqual(["a", "b", "c"]);
  await ledger.stop();
});

test("sends waiting transactions soon after the journal works again, however long it failed", async () => {
  world = await WriterWorld.start();
  let isAway = false;
  const journal = new TestJournal();
  const record = journal.recordTransactions.bind(journal);
  let tries = 0;
  const lines: string[] = [];
  const write = (message: string): void => void lines.push(message);
  const logger = { ...silentLogger, info: write, warn: write, error: write };
  journal.recordTransactions = async (entries) => {
    tries += 1;
    return isAway ? Promise.reject(new Error("away")) : record(entries);
  };
  let aheadMs = 0;
  const system = createSystemClock();
  const clock: Clock = { ...system, monotonic: () => system.monotonic() + aheadMs };
  const { append, ledger } = await world.createFirstWriter({ journal, clock, logger });
  isAway = true;
  tries = 0;
  const outcome = append("a");
  await until(async () => tries > 0);
  aheadMs = 60_000;
  await until(async () => tries > 2);
  isAway = false;
  expect(await outcome).toMatchObject({ status: "committed" });
  expect(lines.filter((line) => line.startsWith("journal"))).toEqual([
    "journal of transactions not written",
    "journal of transactions written again",
  ]);
  await ledger.stop();
});

test("a stop waits for changes of the journal by blocks that are read meanwhile", async () => {
  world = await WriterWorld.start();
  const journal = new TestJournal();
  const { append, ledger } = await world.createFirstWriter({ journal });
  for (const text of textsOf(20, "a")) await append(text); // One by one: each round lets the tracker read more blocks at once.
  const remove = journal.removeTransactions.bind(journal);
  const removals: string[] = [];
  journal.removeTransactions = async (...entries) => {
    removals.push("begun");
    await turn();
    await remove(...entries);
    removals.push("ended");
  };
  const [mined, reading, released] = [createDeferred<void>(), createDeferred<void>(), createDeferred<void>()];
  world.provider.current = async (request, pass) => {
    if (request.method === "eth_getBlockByNumber") await mined.promise;
    if (request.method === "eth_getLogs") {
      reading.resolve();
      await released.promise;
    }
    return pass();
  };
  await world.ask("anvil_mine", "0x100");
  mined.resolve();
  await reading.promise;
  const stopped = ledger.stop();
  await turn();
  released.resolve();
  await stopped;
  expect(removals).toEqual(["begun", "ended"]);
});

describe("a chain that is stopped while events are published, and started again with its state", () => {
  test("every event gets a correct answer, and the ledger continues by itself", async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "stele-writer-"));
    const options = ["--state", path.join(folder, "state.json")];
    world = await WriterWorld.start(options);
    try {
      const { append, ledger } = await world.createFirstWriter({ deadlineMs: 8000 });
      const answers = new Map<string, unknown>();
      const publish = async (text: string): Promise<void> => {
        const [answer] = await Promise.allSettled([append(text)]);
        answers.set(text, answer?.status === "fulfilled" ? answer.value?.status : answer?.reason.code);
      };
      const running = Promise.all(textsOf(30, "a").map(publish));
      await until(async () => (await world.published()).length > 5);
      const down = Promise.all(textsOf(5, "b").map(publish));
      await world.replaceChain(options, async () => publish("c"));
      await Promise.all([running, down, publish("d")]);
      expect(answers.get("d")).toBe("committed");
      const published = await world.published();
      for (const [text, answer] of answers) {
        const times = published.filter((other) => other === text).length;
        if (answer === "committed") expect({ text, times }).toEqual({ text, times: 1 });
        else if (answer === 200201) expect(times).toBeLessThanOrEqual(1);
        else expect({ text, answer, times }).toEqual({ text, answer: 200205, times: 0 });
      }
      await ledger.stop();
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
