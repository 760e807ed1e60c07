import { expect } from "vitest";
import type { BrokerProcess } from "../../harness/broker-process.ts";
import { createRandom, type Random, seedsOf } from "../../harness/random.ts";
import { peakMebibytes, residentMebibytes } from "../../hostile/support/process-memory.ts";

const isLong = process.env["CHECKS_ROUNDS"] !== undefined;
/** Mutants of one seed, each on its own connection. Twenty rounds of the long run make a million. */
const mutantsPerSeed = isLong ? 50_000 : 800;
/** During each part an honest client works. After each part, the test reads the broker's memory. */
const partsPerSeed = isLong ? 2 : 4;
const laneCount = 40;
const peakMebibytesMax = 512;
/**
 * Limit of the growth from the highest reading of the first half to the last reading. A broker's memory usually varies by less. In the long run this
 * limit shows a leak of about 140 bytes per mutant.
 */
const growthMebibytesMax = 64;

export const mutantsTimeoutMs = isLong ? 36_000_000 : 600_000;

export interface MutantRun<Outcome extends string> {
  readonly protocol: "MQTT" | "STOMP";
  readonly broker: BrokerProcess;
  /** Environment variable that chooses the seeds. */
  readonly seedsVariable: string;
  /** Each of these must occur more often, over all seeds, than a hundredth of {@link mutantsPerSeed}. */
  readonly outcomes: readonly Outcome[];
  /**
   * Sends one mutant on its own connection. A lane starts its next attack when the previous one has ended. @throws Error for an answer that the protocol
   * does not allow.
   */
  readonly attack: (random: Random, lane: number) => Promise<Outcome>;
  /** Lets another client, which stays connected, do its work. */
  readonly serveHonest: () => Promise<void>;
}

/** Attacks the broker over many connections at once, and checks that its memory does not grow. */
export async function runMutants<Outcome extends string>(run: MutantRun<Outcome>): Promise<void> {
  const { protocol, broker, outcomes } = run;
  const seeds = seedsOf(run.seedsVariable, [1]);
  const tally = new Map<Outcome, number>(outcomes.map((outcome) => [outcome, 0]));
  const mebibytes: number[] = [];
  const parts = seeds.flatMap((seed) => {
    const randoms = createRandoms(seed);
    return Array.from({ length: partsPerSeed }, () => randoms);
  });
  for (const randoms of parts) {
    const attacks = randoms.map((random, lane) => attackOften(run, { random, lane, tally }));
    await Promise.all([...attacks, run.serveHonest()]);
    mebibytes.push(Math.round(residentMebibytes(broker.pid)));
    const soFar = JSON.stringify(Object.fromEntries(tally));
    process.stdout.write(`mutated ${protocol} so far: ${soFar}; ${mebibytes.at(-1)} MiB\n`);
  }
  const most = Math.max(...mebibytes.slice(0, parts.length / 2));
  const last = mebibytes.at(-1);
  const counts = [...tally.values()];
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(mutantsPerSeed * seeds.length);
  for (const count of counts) expect(count).toBeGreaterThan(mutantsPerSeed / 100);
  expect(broker.stdout()).not.toContain("connection failed");
  expect(last).toBeLessThan(most + growthMebibytesMax);
  expect(peakMebibytes(broker.pid)).toBeLessThan(peakMebibytesMax);
}

function createRandoms(seed: number): readonly Random[] {
  return Array.from({ length: laneCount }, (_, lane) => createRandom(seed * laneCount + lane));
}

interface Lane<Outcome> {
  readonly random: Random;
  readonly lane: number;
  /** How often each outcome occurred. */
  readonly tally: Map<Outcome, number>;
}

async function attackOften<Outcome extends string>(
  { attack }: MutantRun<Outcome>,
  { random, lane, tally }: Lane<Outcome>,
): Promise<void> {
  for (let left = mutantsPerSeed / laneCount / partsPerSeed; left > 0; left -= 1) {
    const outcome = await attack(random, lane);
    tally.set(outcome, (tally.get(outcome) ?? 0) + 1);
  }
}
