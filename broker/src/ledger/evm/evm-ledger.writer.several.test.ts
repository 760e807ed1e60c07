import { expect, test } from "vitest";
import { testKey } from "./testing/evm-harness.ts";
import { until, type Writer, WriterWorld } from "./testing/writer-world.ts";

const eventsEach = 40;

test("two ledgers with different keys publish to one topic at once: no gap, and each append returns the sequence of its event", async () => {
  const world = await WriterWorld.start(["--block-time", "1"]);
  try {
    const first = await world.createFirstWriter();
    const privateKey = testKey("second writer");
    await world.fund(privateKey);
    const second = await world.createWriter({ privateKey, registry: first.ledger.registryAddress });
    const places = new Map<string, number>();
    const publish = async (writer: Writer, text: string): Promise<void> => {
      const outcome = await writer.append(text);
      if (outcome?.status !== "committed") throw new Error(`${text} is ${outcome?.status}`);
      places.set(text, outcome.firstSequence);
    };
    const texts = Array.from({ length: eventsEach }, (_, index) => index);
    await Promise.all(texts.flatMap((index) => [publish(first, `first ${index}`), publish(second, `second ${index}`)]));
    const published = await world.published();
    expect(published).toHaveLength(2 * eventsEach);
    for (const [text, sequence] of places) expect(published[sequence - 1]).toBe(text);
    await first.ledger.stop();
    await second.ledger.stop();
  } finally {
    await world.stop();
  }
});

test("settled waits for the transactions of another live signer, but not for later ones", async () => {
  const world = await WriterWorld.start();
  try {
    const first = await world.createFirstWriter();
    const privateKey = testKey("second writer");
    await world.fund(privateKey);
    const second = await world.createWriter({ privateKey, registry: first.ledger.registryAddress });
    await world.ask("evm_setAutomine", false);
    const pending = first.append("a");
    await until(async () => (await world.poolSize()) === 1);
    const settled = second.ledger.settled(first.ledger.sender, AbortSignal.timeout(10_000));
    let isAsked = false;
    world.provider.current = async (request, pass) => {
      if (request.method === "eth_getTransactionCount" && /^0x\d/.test(String(request.params?.[1]))) isAsked = true;
      return pass();
    };
    await until(async () => isAsked);
    await world.ask("evm_mine");
    const outcome = await pending;
    const later = first.append("b");
    expect(outcome).toMatchObject({ status: "committed", blockNumber: await settled });
    await world.ask("evm_mine");
    await later;
    await first.ledger.stop();
    await second.ledger.stop();
  } finally {
    await world.stop();
  }
});
