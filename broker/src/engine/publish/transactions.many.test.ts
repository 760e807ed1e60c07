import { expect, it } from "vitest";
import { parseTopicName } from "../../domain/topic-name.ts";
import { silentLogger } from "../../lib/logger.ts";
import type { TransactionOutcome } from "../broker.ts";
import { IndexProgress } from "../index-progress.ts";
import { OpenTopics } from "./open-topics.ts";
import { Transactions } from "./transactions.ts";

it("does not compare each event of a transaction with each of its thousand topics", async () => {
  const eventsMax = 1_000;
  let namesRead = 0;
  const events = Array.from({ length: eventsMax }, (_, index) => {
    const name = parseTopicName(`t${index}`);
    return {
      get name() {
        namesRead += 1;
        return name;
      },
      payload: { content: Buffer.from("x"), extensions: [] },
    };
  });
  const topics = new OpenTopics({
    read: async () => undefined,
    progress: new IndexProgress(),
    waitingMax: eventsMax,
    waitingBytesMax: 1_000_000,
    logger: silentLogger,
  });
  const transactions = new Transactions({ topics, batcher: { addAll: () => expect.unreachable() } });
  const outcome = await new Promise<TransactionOutcome>((resolve) => transactions.submit(events, resolve));
  expect(outcome).toMatchObject({ status: "REFUSED", error: { code: 100101 } });
  expect(namesRead).toBeLessThan(10 * eventsMax);
});
