import { BrokerError } from "@stele/wire";
import { expect, it } from "vitest";
import type { Topic } from "../../domain/topic.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { silentLogger } from "../../lib/logger.ts";
import type { TopicOpening } from "../../ports/ledger.ts";
import { IndexProgress } from "../index-progress.ts";
import { OpenTopics } from "./open-topics.ts";

it("bounds the number and the bytes of publishes that wait for the index", async () => {
  const reads: (() => void)[] = [];
  const topics = new OpenTopics({
    read: () => new Promise((resolve) => reads.push(() => resolve(undefined))),
    progress: new IndexProgress(),
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

it("if a callback publishes twice to a missing topic, opens it for the first publish, and refuses the second without a function to open it", async () => {
  const topics = new OpenTopics({
    read: async () => undefined,
    progress: new IndexProgress(),
    waitingMax: 9,
    waitingBytesMax: 9,
    logger: silentLogger,
  });
  const name = parseTopicName("a");
  const found: unknown[] = [];
  const onFound = (topic: unknown): void => void found.push(topic instanceof BrokerError ? topic.code : "opening");
  let openings = 0;
  const open = async (): Promise<TopicOpening> => {
    openings += 1;
    await new Promise(setImmediate);
    return { address: "0x00", writers: undefined };
  };
  const publishAgain = (): void => {
    topics.read(name, { bytes: 1, onFound, open });
    topics.read(name, { bytes: 1, onFound });
  };
  topics.read(name, { bytes: 1, onFound: publishAgain });
  for (let turns = 0; turns < 5; turns += 1) await new Promise(setImmediate);
  expect([openings, found]).toEqual([1, ["opening", 100_101]]);
});

const closed: Topic = {
  name: parseTopicName("a"),
  address: "0x00",
  sender: "0x00",
  createdTimestamp: 0,
  sequence: 1,
  blockNumber: 1,
  closed: true,
};

it.each([
  ["does not exist", undefined, 100_101],
  ["is closed", closed, 100_112],
])("tells a publish to a topic that %s to open it first", async (_, topic, code) => {
  const topics = new OpenTopics({
    read: async () => topic,
    progress: new IndexProgress(),
    waitingMax: 9,
    waitingBytesMax: 9,
    logger: silentLogger,
  });
  const found = new Promise((onFound) => {
    topics.read(parseTopicName("a"), { bytes: 1, onFound });
  });
  expect(await found).toMatchObject({ code, hints: ["Open it first."] });
});
