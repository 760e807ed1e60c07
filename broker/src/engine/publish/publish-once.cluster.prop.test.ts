import { decodeEvents, formatEventId, topicDigest } from "@stele/wire";
import fc from "fast-check";
import { expect, it } from "vitest";
import type { PublishOutcome } from "../broker.ts";
import { MessageDelays } from "../testing/message-delays.ts";
import { applyTrouble, nodeTroubles } from "../testing/node-troubles.ts";
import { TestCluster } from "../testing/test-cluster.ts";

const runs = Math.ceil(25 * Number(process.env["CHECKS_ROUNDS"] ?? "0.5"));
const nodesMax = 3;
const keys = ["k1", "k2", "k3", "k4"] as const;
/** Within this time every node answers each publish, in milliseconds. */
const answerMsMax = 40_000;

const node = fc.nat(nodesMax - 1);
const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constant("publish" as const), node, key: fc.constantFrom(...keys, undefined) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constantFrom(...nodeTroubles),
      node,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("reorganise" as const),
      depth: fc.integer({ min: 1, max: 3 }),
      /** The fates of the removed batches in turn, from the first one again after the last. `later` seals an empty block before the batch. */
      fates: fc.array(fc.constantFrom("kept" as const, "kept", "later", "dropped"), { minLength: 1, maxLength: 4 }),
      longerBy: fc.nat(2),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("wait" as const),
      ms: fc.constantFrom(1, 10, 60, 110, 160, 1_000, 3_000, 9_000),
    }),
  },
);
const history = fc.record({
  steps: fc.array(step, { minLength: 8, maxLength: 30, size: "max" }),
  /** Delays of successive messages between nodes and the store, in milliseconds. */
  delaysMs: fc.array(fc.constantFrom(0, 1, 5, 50), { minLength: 1, maxLength: 12 }),
});
type History = typeof history extends fc.Arbitrary<infer Value> ? Value : never;

/** Histories in which earlier code failed: a key had no event or several, or a node did not answer. The comment of each says why. */
const examples: [History][] = [
  // A node recorded the key, and that its event comes after the newest indexed block. A reorg then moved the event below that block. The other nodes searched
  // only above the block, and never found the event.
  [
    {
      steps: [
        { kind: "reorganise", depth: 1, fates: ["kept"], longerBy: 1 },
        { kind: "publish", node: 0, key: "k1" },
        { kind: "reorganise", depth: 1, fates: ["kept"], longerBy: 0 },
        { kind: "publish", node: 0, key: "k1" },
        { kind: "resume", node: 0 },
        { kind: "wait", ms: 1 },
        { kind: "publish", node: 0, key: "k1" },
        { kind: "reorganise", depth: 1, fates: ["kept"], longerBy: 0 },
        { kind: "wait", ms: 10 },
      ],
      delaysMs: [5],
    },
  ],
  // A reorg rolled the index back between two checks of whether the publish was settled. The second check found no event, because the index did not have its
  // new block yet.
  [
    {
      steps: [
        { kind: "reorganise", depth: 1, fates: ["kept"], longerBy: 1 },
        { kind: "wait", ms: 9_000 },
        { kind: "reorganise", depth: 1, fates: ["kept"], longerBy: 0 },
        { kind: "publish", node: 1, key: "k3" },
        { kind: "wait", ms: 9_000 },
        { kind: "publish", node: 1, key: "k3" },
        { kind: "wait", ms: 1_000 },
        { kind: "reorganise", depth: 1, fates: ["kept"], longerBy: 0 },
        { kind: "wait", ms: 9_000 },
      ],
      delaysMs: [50],
    },
  ],
];

class World {
  readonly cluster: TestCluster;
  readonly #usedKeys = new Set<string>();
  #keyless = 0;

  constructor(cluster: TestCluster) {
    this.cluster = cluster;
  }

  /** The keys of publishes that a node received. */
  get usedKeys(): readonly string[] {
    return [...this.#usedKeys];
  }

  async apply(step: History["steps"][number]): Promise<void> {
    if (step.kind === "wait") await this.cluster.clock.advance(step.ms);
    else if (step.kind === "publish") this.submit(step.node, step.key);
    else if (step.kind === "reorganise") this.#reorganise(step);
    else applyTrouble(this.cluster, step.kind, step.node);
    await this.cluster.clock.settle();
  }

  /** Publishes at a node, without waiting. */
  submit(at: number, key: string | undefined): { outcome: PublishOutcome | undefined } {
    const answer: { outcome: PublishOutcome | undefined } = { outcome: undefined };
    if (key === undefined) this.#keyless += 1;
    else if (this.cluster.find(at) !== undefined) this.#usedKeys.add(key);
    const content = new TextEncoder().encode(key ?? `without a key ${this.#keyless}`);
    const call = { topic: "a", groupId: undefined, content, extensions: [], key };
    try {
      this.cluster.find(at)?.broker.submit(call, (outcome) => (answer.outcome = outcome));
    } catch (error) {
      answer.outcome = { status: "REFUSED", error };
    }
    return answer;
  }

  /** Repairs all nodes. Then publishes each used key at every node, again and again, until every node answers with an event. */
  async finish(): Promise<ReadonlyMap<string, readonly string[]>> {
    await this.cluster.recover(nodesMax, 60_000);
    for (let blocks = 0; blocks < 8; blocks += 1) this.cluster.chain.sealEmpty(); // Nodes wait while the chain is shorter than the index.
    await this.cluster.clock.advance(20_000);
    let open = this.usedKeys;
    const found = new Map<string, readonly string[]>();
    for (let tries = 0; open.length > 0 && tries < 5; tries += 1) {
      const answers = open.map((key) => Array.from({ length: nodesMax }, (_, index) => this.submit(index, key)));
      await this.cluster.clock.advance(answerMsMax);
      for (const [index, key] of open.entries()) {
        const outcomes = (answers[index] ?? []).flatMap(({ outcome }) =>
          outcome?.status === "SUCCESS" ? outcome.eventId : [],
        );
        if (outcomes.length === nodesMax) found.set(key, outcomes);
      }
      open = open.filter((key) => !found.has(key));
    }
    expect(open, "every node answers").toEqual([]);
    return found;
  }

  /** The contents and identifiers of the events on the chain. */
  published(): readonly { readonly text: string; readonly eventId: string }[] {
    const { chain } = this.cluster;
    const blocks = Array.from({ length: chain.head + 1 }, (_, number) => chain.find(number)?.entries ?? []);
    return blocks.flatMap((entries, blockNumber) =>
      entries.flatMap((entry) => {
        if (entry.kind !== "events-committed") return [];
        return decodeEvents(entry.events).map(({ content }, index) => ({
          text: new TextDecoder().decode(content),
          eventId: formatEventId({ topicDigest: topicDigest("a"), sequence: entry.firstSequence + index, blockNumber }),
        }));
      }),
    );
  }

  /** Replaces the newest blocks. The new branch includes the removed batches again, unless their fate is `dropped`: every chain node has them in its pool. */
  #reorganise({ depth, fates, longerBy }: Extract<History["steps"][number], { kind: "reorganise" }>): void {
    const { chain } = this.cluster;
    const from = chain.head;
    const to = Math.max(1, from - depth);
    const removed = Array.from({ length: from - to }, (_, index) => chain.find(to + 1 + index)?.entries ?? []).flat();
    chain.cutBack(to);
    for (const [index, entry] of removed.entries()) {
      const fate = fates[index % fates.length];
      if (entry.kind !== "events-committed" || fate === "dropped") continue;
      if (fate === "later") chain.sealEmpty();
      chain.publish([{ address: entry.address, count: entry.count, events: entry.events }], {
        publisher: entry.publisher,
      });
    }
    for (let blocks = 0; blocks < longerBy; blocks += 1) chain.sealEmpty();
  }
}

async function check({ steps, delaysMs }: History): Promise<void> {
  const delays = new MessageDelays(delaysMs);
  const cluster = await TestCluster.start(nodesMax, { delayMs: delays.next });
  await cluster.run(cluster.node(0).broker.open({ topic: "a", groupId: undefined }));
  await cluster.clock.advance(1_000);
  const world = new World(cluster);
  delays.isOn = true;
  for (const each of steps) await world.apply(each);
  delays.isOn = false;
  const answers = await world.finish();
  const published = world.published();
  for (const key of world.usedKeys) {
    const own = published.filter(({ text }) => text === key);
    expect(own, key).toHaveLength(1);
    expect(answers.get(key)).toEqual(Array.from({ length: nodesMax }, () => own[0]?.eventId));
  }
  await cluster.stopAll();
}

it(
  "each key has one event on the final chain, and every node answers with it, despite reorgs and failures of nodes",
  async () => {
    await fc.assert(fc.asyncProperty(history, check), { numRuns: runs, examples });
  },
  60_000 * runs,
);
