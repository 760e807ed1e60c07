import { BrokerError } from "@stele/wire";
import { expect, it } from "vitest";
import { parseTopicName } from "../../domain/topic-name.ts";
import { silentLogger } from "../../lib/logger.ts";
import { OpenTopics } from "./open-topics.ts";

it("bounds the number and the bytes of publishes that wait for the index", async () => {
  const reads: (() => void)[] = [];
  const topics = new OpenTopics({
    read: () => new Promise((resolve) => reads.push(() => resolve(undefined))),
    waitingMax: 3,
    waitingBytesMax: 100,
    logger: silentLogger,
  });
  const found: unknown[] = [];
  const wait = (bytes: number): void =>
    topics.read(parseTopicName("a"), { bytes, onFound: (topic) => void found.push(topic) });
  wait(60);
  wait(40);
  expect(() => wait(1)).toThrow(BrokerError);
  // A caller that comes during a read that finds nothing waits for the next read.
  for (let count = 0; count < 2; count += 1) {
    reads[count]?.();
    await new Promise(setImmediate);
  }
  expect(found).toHaveLength(2);
  wait(100);
});
