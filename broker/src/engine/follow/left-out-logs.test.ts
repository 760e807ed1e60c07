import { encodeEvents } from "@stele/wire";
import { expect, it, onTestFinished } from "vitest";
import { topicAddress } from "../../ledger/memory/memory-chain.ts";
import { type LogFields, type Logger, silentLogger } from "../../lib/logger.ts";
import type { Ledger, LedgerBlock } from "../../ports/ledger.ts";
import { TestCluster } from "../testing/test-cluster.ts";

/** Two nodes whose ledgers leave out the events of the next blocks, and keep what they have read until they must forget it. */
class GappyCluster {
  readonly cluster: TestCluster;
  /** The blocks that the index lacked, each time that it was rolled back. */
  readonly gaps: unknown[] = [];
  /** How often each block will be read without its events. */
  readonly #leftOut = new Map<number, number>();
  /** The blocks that the ledgers have read. Both share them: otherwise the other node could heal the index. */
  readonly #kept = new Map<number, LedgerBlock>();
  /** Blocks whose events the next search leaves out as well. */
  readonly #hidden = new Set<number>();
  #id = "";

  private constructor(cluster: TestCluster) {
    this.cluster = cluster;
  }

  static async start(): Promise<GappyCluster> {
    const warn = (message: string, fields?: LogFields): void => {
      if (message.startsWith("index lacked events")) gappy.gaps.push(fields?.["blockNumber"]);
    };
    const logger: Logger = { ...silentLogger, warn, child: () => logger };
    const cluster = new TestCluster({ toLedger: (ledger) => gappy.#toLedger(ledger), logger });
    const gappy = new GappyCluster(cluster);
    onTestFinished(() => cluster.stopAll());
    for (let index = 0; index < 2; index += 1) cluster.launch(index);
    await cluster.clock.advance(2_000);
    for (const topic of ["a", "b"]) await cluster.run(cluster.node(0).broker.open({ topic, groupId: undefined }));
    gappy.#id = await cluster.run(cluster.subscribe(1, "#"));
    await gappy.publish("a", "1");
    return gappy;
  }

  /** Leaves out the events of the next `count` blocks, once or the first `times` times. */
  leaveOut(count: number, times = 1): void {
    for (let index = 1; index <= count; index += 1) this.#leftOut.set(this.cluster.chain.head + index, times);
  }

  /** Hides the events of the next block from the first search. */
  hide(): void {
    this.#hidden.add(this.cluster.chain.head + 1);
  }

  publish(topic: string, text: string): Promise<string> {
    return this.cluster.run(this.cluster.publish(0, topic, text));
  }

  get texts(): readonly string[] {
    const mine = this.cluster.sink.attempts.filter(({ subscription }) => subscription.id === this.#id);
    return mine.map(({ event }) => Buffer.from(event.content).toString());
  }

  async expectLast(...texts: readonly string[]): Promise<void> {
    await this.cluster.clock.advance(10_000);
    expect(this.texts.slice(-texts.length)).toEqual(texts);
    expect(this.cluster.nodes.map(({ broker }) => broker.groupHealth()[0]?.ready)).toEqual([true, true]);
  }

  #toLedger(ledger: Ledger): Ledger {
    const read = (block: LedgerBlock): LedgerBlock => {
      const times = this.#leftOut.get(block.number) ?? 0;
      const known = this.#kept.get(block.number);
      const seen = known ?? (times > 0 ? { ...block, entries: [] } : block);
      if (known === undefined) this.#leftOut.set(block.number, times - 1);
      this.#kept.set(block.number, seen);
      return seen;
    };
    const follow = ledger.follow.bind(ledger);
    ledger.follow = async function* (after, signal) {
      for await (const step of follow(after, signal))
        yield step.kind === "blocks" ? { kind: "blocks", blocks: step.blocks.map(read) } : step;
    };
    ledger.forgetBlocks = () => this.#kept.clear();
    const findBatch = ledger.findBatch.bind(ledger);
    ledger.findBatch = async (...call) => {
      const blockNumber = await findBatch(...call);
      return blockNumber !== undefined && this.#hidden.delete(blockNumber) ? undefined : blockNumber;
    };
    return ledger;
  }
}

it("if the chain left out the events of a block, reads the block again and delivers the events in order", async () => {
  const gappy = await GappyCluster.start();
  gappy.leaveOut(1);
  expect(await gappy.publish("a", "2")).toBe("TIMEOUT");
  await gappy.publish("b", "3");
  await gappy.cluster.clock.advance(5_000);
  expect(gappy.texts).toEqual(["1", "3"]);
  await gappy.publish("a", "4");
  await gappy.expectLast("2", "3", "4");
});

it("reads two consecutive blocks again", async () => {
  const gappy = await GappyCluster.start();
  gappy.leaveOut(2);
  for (const text of ["2", "3"]) expect(await gappy.publish("a", text)).toBe("TIMEOUT");
  expect(gappy.texts).toEqual(["1"]);
  await gappy.publish("a", "4");
  await gappy.expectLast("1", "2", "3", "4");
});

it("rolls back only to the block before the topic's next event, even if the chain leaves it out again", async () => {
  const gappy = await GappyCluster.start();
  gappy.leaveOut(2);
  gappy.hide();
  const gap = gappy.cluster.chain.head + 1;
  for (const text of ["2", "3"]) await gappy.publish("a", text);
  await gappy.publish("a", "4");
  await gappy.expectLast("1", "2", "3", "4");
  expect(gappy.gaps).toEqual([gap]);
  const warnings = gappy.cluster.nodes.map(({ broker }) => broker.health()[0]?.warning);
  expect(new Set(warnings)).toEqual(
    new Set([
      expect.stringContaining(`lacked events of block ${gap},`),
      expect.stringContaining("lacked their events"),
    ]),
  );
});

it("does not roll back before it can read the left-out events", async () => {
  const gappy = await GappyCluster.start();
  gappy.leaveOut(1, 3);
  const gap = gappy.cluster.chain.head + 1;
  await gappy.publish("a", "2");
  await gappy.publish("b", "3");
  await gappy.publish("a", "4");
  await gappy.expectLast("1", "3", "2", "3", "4");
  expect(gappy.gaps).toEqual([gap]);
});

it("if a left-out event and the next one come in one step, reads the block again and delivers no event twice", async () => {
  const gappy = await GappyCluster.start();
  gappy.leaveOut(1);
  for (const text of ["2", "3"]) {
    const events = encodeEvents([{ content: Buffer.from(text), extensions: [] }]);
    gappy.cluster.chain.publish([{ address: topicAddress("a"), count: 1, events }]);
  }
  await gappy.expectLast("1", "2", "3");
});
