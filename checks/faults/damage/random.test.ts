import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createRandom, seedsOf } from "../../harness/random.ts";
import { damageRowAndBlock } from "../support/damaged-pair.ts";
import { applyDamage, chooseDamage, damagedFiles, describeDamage, excusesOf } from "../support/damage.ts";
import { judge } from "../support/judge.ts";
import { fillPromisedFolder, type PromisedFolder } from "../support/promised-folder.ts";
import { Tally } from "../support/tally.ts";

const eventsTotal = 120;
/** Of the first seeds, those that together damage each file in most ways. */
const usualSeeds = [1, 2, 4, 5, 7, 9, 10, 11, 13, 14, 17, 19, 20, 26, 28, 30, 34, 35, 40, 42];
const seeds = seedsOf("CHECKS_DAMAGE_SEEDS", usualSeeds);
/** Seeds that also damage a row and a block together. The broker must refuse to start after each of these damages. */
const pairSeeds = seeds.slice(0, 2);

describe("damaged files never lead to a wrong answer", () => {
  const tally = new Tally("damage");
  let filled: PromisedFolder;
  beforeAll(async () => {
    filled = await fillPromisedFolder(eventsTotal);
  });
  afterAll(() => {
    filled[Symbol.dispose]();
    tally.print();
  });

  it.each(seeds.map((seed) => [seed, describeDamage(chooseDamage(createRandom(seed)))] as const))(
    "after damage to files (seed %i, %s), the broker gives no wrong answer",
    async (seed) => {
      const random = createRandom(seed);
      const damage = chooseDamage(random);
      using folder = filled.copy(damage.state);
      applyDamage(damage, { folder: folder.path, earlier: filled.path("earlier"), random });
      const { verdict, said } = await judge(folder.path, filled.promised, excusesOf(damage));
      tally.count(verdict);
      expect(verdict, said).not.toMatch(/^wrong/);
    },
  );

  it("the usual seeds damage each file", () => {
    const hits = usualSeeds.flatMap((seed) => chooseDamage(createRandom(seed)).hits);
    expect(new Set(hits.map(({ file }) => file))).toEqual(new Set(damagedFiles));
  });

  it.each(pairSeeds.flatMap((seed) => [[seed, "stopped"] as const, [seed, "killed"] as const]))(
    "with a damaged row of the index and a damaged block of the chain (seed %i, %s), the broker refuses to start",
    async (seed, state) => {
      const random = createRandom(seed);
      using folder = filled.copy(state);
      damageRowAndBlock(folder.path, random);
      const { verdict, said } = await judge(folder.path, filled.promised);
      expect(verdict, said).toBe("refused");
      expect(said).toMatch(/store\.sqlite.*chain\.sqlite.*Block \d+ of the chain is damaged/);
    },
  );
});
