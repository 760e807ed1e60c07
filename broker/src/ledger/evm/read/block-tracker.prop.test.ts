import fc from "fast-check";
import { expect, it } from "vitest";
import type { Address } from "../../../domain/topic.ts";
import { VirtualClock } from "../../../ports/testing/virtual-clock.ts";
import { silentLogger } from "../../../lib/logger.ts";
import type { BlockRef, LedgerBlock } from "../../../ports/ledger.ts";
import { BatchVerifier } from "./batch-verifier.ts";
import { BlockTracker } from "./block-tracker.ts";
import { BlockReader } from "./block-reader.ts";
import { FinalityPolicy } from "./finality.ts";
import { Rpc } from "../endpoint/rpc.ts";
import { FakeNode } from "../testing/fake-node.ts";

const registry: Address = `0x${"12".repeat(20)}`;
const stepArbitrary = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("seal" as const),
      counts: fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 30 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("look" as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("reorganise" as const),
      depth: fc.integer({ min: 1, max: 20 }),
      isReversed: fc.boolean(),
      drop: fc.integer({ min: 1, max: 5 }),
    }),
  },
);
type Step = typeof stepArbitrary extends fc.Arbitrary<infer Value> ? Value : never;

/** A tracker on a fake chain, and the blocks that its follower holds. */
class World {
  readonly node = new FakeNode(registry);
  readonly clock = new VirtualClock();
  readonly rpc = new Rpc(this.node);
  readonly tracker: BlockTracker;
  readonly ended = new AbortController();
  blocks: LedgerBlock[] = [];
  reorganisations = 0;
  /** Number of reorgs for which the tracker reported the last common block. */
  namedForks = 0;
  #marks = 0;

  constructor(confirmations: number, lags: readonly number[]) {
    // Chain nodes answer in turn. Now and then another client takes a turn: otherwise a repeated request could always reach the same lagging node.
    let [requests, random] = [0, 1];
    this.node.behind = () => {
      random = (random * 16_807) % 2_147_483_647;
      requests += random % 8 === 0 ? 2 : 1;
      return lags[requests % lags.length] ?? 0;
    };
    const reader = new BlockReader({
      rpc: this.rpc,
      clock: this.clock,
      logger: silentLogger,
      registry,
      account: registry,
      verifier: new BatchVerifier(),
    });
    const finality = new FinalityPolicy(this.rpc, confirmations === 0 ? "latest" : confirmations);
    this.tracker = new BlockTracker({
      rpc: this.rpc,
      reader,
      finality,
      genesisHash: this.node.genesisHash,
      isFinal: false,
      clock: this.clock,
      logger: silentLogger,
    });
  }

  get marks(): readonly number[] {
    return this.blocks.flatMap(({ entries }) => entries.map(({ address }) => Number(address)));
  }

  run(step: Step): void {
    if (step.kind === "seal")
      for (const count of step.counts) this.node.seal(Array.from({ length: count }, () => (this.#marks += 1)));
    if (step.kind !== "reorganise") return;
    const from = this.node.head;
    const gone = this.node.cutBack(Math.max(0, from - step.depth));
    for (const marks of step.isReversed ? gone.toReversed() : gone)
      this.node.seal(marks.filter((mark) => mark % step.drop !== 0));
  }

  async look(): Promise<void> {
    this.tracker.onHead(await this.rpc.header("latest"));
    await this.clock.advance(6_000);
  }

  async follow(): Promise<void> {
    while (!this.ended.signal.aborted) {
      for await (const step of this.tracker.follow(this.blocks.at(-1), this.ended.signal)) {
        if (step.kind === "blocks") this.blocks.push(...step.blocks);
        else await this.#cutBack(step.common);
      }
    }
  }

  /** Rolls back to `common`; if that is undefined, to the newest block that is still on the chain. */
  async #cutBack(common: BlockRef | undefined): Promise<void> {
    this.reorganisations += 1;
    if (common !== undefined) {
      this.namedForks += 1;
      this.blocks = this.blocks.filter(({ number }) => number <= common.number);
      const named = this.blocks.find(({ number }) => number === common.number);
      expect(named?.hash ?? common.hash).toBe(common.hash);
      return;
    }
    while (this.blocks.length > 0) {
      const last = this.blocks.at(-1);
      if (last !== undefined && (await this.rpc.findHeader(last.number))?.hash === last.hash) return;
      this.blocks.pop();
    }
  }
}

async function check(
  steps: readonly Step[],
  options: { confirmations: number; lags: readonly number[] },
): Promise<World> {
  const world = new World(options.confirmations, options.lags);
  await world.tracker.start(await world.rpc.header("latest"));
  const following = world.follow();
  for (const step of steps) {
    world.run(step);
    if (step.kind === "look") await world.look();
  }
  for (let index = 0; index <= options.confirmations; index += 1) world.node.seal([]);
  for (let looks = 0; looks < 40; looks += 1) await world.look();
  world.ended.abort();
  await world.tracker.stop();
  await following;
  return world;
}

const historyArbitrary = fc.array(stepArbitrary, { minLength: 1, maxLength: 12 });
const lagsArbitrary = fc.array(fc.integer({ min: 0, max: 6 }), { maxLength: 5 }).map((lags) => [...lags, 0, 0]);

it("a follower ends up with the final chain after any history, even if lagging chain nodes answer", async () => {
  await fc.assert(
    fc.asyncProperty(historyArbitrary, lagsArbitrary, fc.constantFrom(0, 2), async (steps, lags, confirmations) => {
      const world = await check(steps, { confirmations, lags });
      expect(world.marks).toEqual(world.node.marks);
    }),
    { numRuns: 40 },
  );
}, 60_000);

it("reports no reorg if blocks are final only after 20 confirmations", async () => {
  await fc.assert(
    fc.asyncProperty(historyArbitrary, lagsArbitrary, async (steps, lags) => {
      const world = await check(steps, { confirmations: 20, lags });
      expect(world.marks).toEqual(world.node.marks);
      expect(world.reorganisations).toBe(0);
    }),
    { numRuns: 20 },
  );
}, 60_000);

it("names the last common block of a fork that replaces the last three of ten blocks", async () => {
  const world = await check(
    [
      { kind: "seal", counts: [1, 1, 1, 1, 1, 1, 1, 1, 1, 1] },
      { kind: "look" },
      { kind: "reorganise", depth: 3, isReversed: true, drop: 5 },
      { kind: "seal", counts: [1] },
    ],
    { confirmations: 0, lags: [0] },
  );
  expect(world.marks).toEqual(world.node.marks);
  expect([world.reorganisations, world.namedForks]).toEqual([1, 1]);
});

it("rolls nothing back if one answer comes from another chain", async () => {
  const world = new World(0, [0]);
  for (let count = 0; count < 10; count += 1) world.node.seal([count]);
  await world.tracker.start(await world.rpc.header("latest"));
  const following = world.follow();
  world.node.seal([10]);
  await world.look();
  const head = await world.rpc.header("latest");
  const hash = `0x${"99".repeat(32)}` as const;
  const { request } = world.node;
  let denied = 0;
  world.node.request = async (call) => {
    const answer = await request.call(world.node, call);
    const isDenied = call.method === "eth_getBlockByNumber" && Number(call.params?.[0]) === head.number;
    if (!isDenied || denied > 0) return answer;
    denied += 1;
    return { ...(answer as object), hash };
  };
  world.tracker.onHead({ ...head, hash });
  await world.look();
  expect(denied).toBe(1);
  expect(world.reorganisations).toBe(0);
  world.ended.abort();
  await world.tracker.stop();
  await following;
});

it("reads a block again after forgetBlocks if a chain node left out its logs", async () => {
  const world = new World(0, [0]);
  const genesis = await world.rpc.header(0);
  await world.tracker.start(genesis);
  const { request } = world.node;
  let isLeavingOut = true;
  world.node.request = async (call) =>
    isLeavingOut && call.method === "eth_getLogs" ? [] : request.call(world.node, call);
  world.node.seal([1]);
  await world.look();
  isLeavingOut = false;
  const readMarks = async (): Promise<readonly number[] | undefined> => {
    for await (const step of world.tracker.follow(genesis, world.ended.signal)) {
      if (step.kind === "blocks")
        return step.blocks.flatMap(({ entries }) => entries.map(({ address }) => Number(address)));
    }
    return undefined;
  };
  expect(await readMarks()).toEqual([]);
  world.tracker.forgetBlocks();
  expect(await readMarks()).toEqual([1]);
  world.ended.abort();
  await world.tracker.stop();
});
