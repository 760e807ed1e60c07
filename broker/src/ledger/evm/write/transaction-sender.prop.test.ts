import { Signer, toHex } from "@stele/eth/node";
import { isBrokerError } from "@stele/wire";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Journal } from "../../../ports/journal.ts";
import type { BlockRef } from "../../../ports/ledger.ts";
import { VirtualClock } from "../../../ports/testing/virtual-clock.ts";
import { testKey } from "../testing/evm-harness.ts";
import { ForkingNode, type NodeMood } from "../testing/forking-node.ts";
import { createSender } from "../testing/sender-world.ts";
import { TestJournal } from "../testing/writer-world.ts";
import type { TransactionSender } from "./transaction-sender.ts";

const moods: readonly NodeMood[] = ["well", "away", "unreached", "lossy", "slow", "failing"];
const refusals = [undefined, undefined, "insufficient funds for gas", "max fee per gas less than block base fee"];
/** Gas that a transaction needs; the ledger offers the first. */
const gasNeeds = [50_000, 50_000, 80_000, 120_000] as const;
const journalMoods = ["well", "well", "slow", "failing"] as const;
const kinds = [
  "send",
  "send",
  "send",
  "mine",
  "mine",
  "reorg",
  "lose",
  "mood",
  "refuse",
  "gas",
  "journal",
  "restart",
] as const;

const actions = fc.array(
  fc.record({ kind: fc.constantFrom(...kinds), size: fc.nat(11), waitMs: fc.integer({ min: 0, max: 2500 }) }),
  { minLength: 20, maxLength: 80 },
);

/** Random numbers below 1 from a seed (Numerical Recipes' generator). */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** A journal that the test slows down, or lets fail. */
class MoodyJournal implements Journal {
  mood: (typeof journalMoods)[number] = "well";
  readonly #journal = new TestJournal();
  readonly #clock: VirtualClock;

  constructor(clock: VirtualClock) {
    this.#clock = clock;
  }

  async recordTransactions(...args: Parameters<Journal["recordTransactions"]>): Promise<void> {
    await this.#wait();
    return this.#journal.recordTransactions(...args);
  }

  async listTransactions(...args: Parameters<Journal["listTransactions"]>): ReturnType<Journal["listTransactions"]> {
    await this.#wait();
    return this.#journal.listTransactions(...args);
  }

  async removeTransactions(...args: Parameters<Journal["removeTransactions"]>): Promise<void> {
    await this.#wait();
    return this.#journal.removeTransactions(...args);
  }

  async #wait(): Promise<void> {
    if (this.mood === "slow") await new Promise<void>((resolve) => void this.#clock.after(1500, resolve));
    if (this.mood === "failing") throw new Error("the database is away");
  }
}

type Answer = "none" | "included" | "unknown" | "refused";

class World {
  readonly answers = new Map<string, Answer>();
  readonly clock = new VirtualClock();
  readonly node: ForkingNode;
  readonly #journal = new MoodyJournal(this.clock);
  readonly #signer = new Signer(testKey("sender"));
  #current: TransactionSender;
  #readUpTo = 0;

  constructor(seed: number) {
    const random = createRandom(seed);
    this.node = new ForkingNode({ account: this.#signer.address, clock: this.clock, random });
    this.node.isStrict = seed % 2 === 0;
    this.node.checksGas = seed % 5 < 2;
    if (seed % 3 === 0) this.node.priceMax = 1_500_000_000n; // One raise of the price.
    this.#current = this.#createSender();
  }

  get unfinished(): number {
    return this.#current.unfinished;
  }

  async act(kind: (typeof kinds)[number], size: number): Promise<void> {
    const { node } = this;
    if (kind === "send") this.#send({ failsForEver: size === 11 });
    else if (kind === "mine") this.mine(size % 4);
    else if (kind === "reorg") this.#reorganise(1 + (size % 3));
    else if (kind === "lose") for (const nonce of [...node.pool.keys()].slice(size % 3)) node.pool.delete(nonce);
    else if (kind === "mood") node.mood = moods[size % moods.length] ?? "well";
    else if (kind === "refuse") node.refusal = refusals[size % refusals.length];
    else if (kind === "gas") node.gasNeeded = gasNeeds[size % gasNeeds.length] ?? gasNeeds[0];
    else if (kind === "journal") this.#journal.mood = journalMoods[size % journalMoods.length] ?? "well";
    else await this.#restart();
  }

  mine(transactionsMax: number): void {
    this.node.mine(transactionsMax);
    this.#readUpTo = this.node.head;
    this.#current.onRound({ logs: [] });
  }

  async heal(): Promise<void> {
    this.node.mood = "well";
    this.node.refusal = undefined;
    this.#journal.mood = "well";
    for (let rounds = 0; rounds < 300; rounds += 1) {
      await this.clock.advance(3000);
      this.mine(10);
    }
  }

  stop(): Promise<void> {
    return this.#current.stop(AbortSignal.abort());
  }

  #send({ failsForEver }: { readonly failsForEver: boolean }): void {
    const data = Buffer.alloc(40, 1);
    data.writeUInt32BE(this.answers.size);
    const text = toHex(data);
    this.answers.set(text, "none");
    if (failsForEver) this.node.failsAt.add(text);
    const request = { to: this.#signer.address, data, gas: gasNeeds[0], logsExpected: 1 };
    this.#current.send(request, new AbortController().signal).then(
      () => this.answers.set(text, "included"),
      (error: unknown) => this.answers.set(text, isBrokerError(error, "transactionTimeout") ? "unknown" : "refused"),
    );
  }

  #reorganise(depth: number): void {
    this.node.forget(depth);
    this.#readUpTo = this.node.head;
    this.#current.onReorganised(this.node.head);
  }

  async #restart(): Promise<void> {
    this.#journal.mood = "well";
    this.node.mood = "well";
    const stopped = this.stop();
    await this.clock.advance(5000);
    await stopped;
    this.#current = this.#createSender();
    await this.#current.start();
    this.#current.onRound({ logs: [] });
  }

  #createSender(): TransactionSender {
    const { clock, node } = this;
    const chain = {
      head: () => node.head,
      readUpTo: () => this.#readUpTo,
      isRead: async ({ number, hash }: BlockRef) => node.hash(number) === hash,
    };
    const options = {
      fees: "legacy",
      journal: this.#journal,
      deadlineMs: 6000,
      feeBumpAfterMs: 5000,
      estimateGas: async ({ data }: { readonly data: Uint8Array }) =>
        Number(await node.request({ method: "eth_estimateGas", params: [toHex(data)] })),
    } as const;
    return createSender({ node, clock, signer: this.#signer, ...chain }, options).sender;
  }
}

test("includes each accepted transaction once, no refused one, and no unknown one twice, whatever node, chain and journal do", async () => {
  await fc.assert(
    fc.asyncProperty(actions, fc.nat(), async (steps, seed) => {
      const world = new World(seed);
      for (const { kind, size, waitMs } of steps) {
        await world.act(kind, size);
        await world.clock.advance(waitMs);
      }
      await world.heal();
      const counts = new Map<string, number>();
      const mined = world.node.blocks.flatMap(({ transactions }) => transactions);
      for (const { data } of mined.filter(({ isReverted }) => !isReverted))
        counts.set(data, (counts.get(data) ?? 0) + 1);
      for (const [data, answer] of world.answers) {
        const times = counts.get(data) ?? 0;
        if (answer === "unknown") expect(times).toBeLessThanOrEqual(1);
        else expect({ answer, times }).toEqual({ answer, times: answer === "included" ? 1 : 0 });
        expect(answer).not.toBe("none");
      }
      expect(world.unfinished).toBe(0);
      await world.stop();
    }),
    { numRuns: 40 },
  );
});
