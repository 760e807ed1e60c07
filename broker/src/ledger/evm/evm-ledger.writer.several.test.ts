import { expect, test } from "vitest";
import { testKey } from "./testing/evm-harness.ts";
import { type Writer, WriterWorld } from "./testing/writer-world.ts";

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
