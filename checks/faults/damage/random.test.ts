import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createRandom, seedsOf } from "../../harness/random.ts";
import { damageRowAndBlock } from "../support/damaged-pair.ts";
import { applyDamage, chooseDamage, describeDamage, excusesOf } from "../support/damage.ts";
import { judge } from "../support/judge.ts";
import { fillPromisedFolder, type PromisedFolder } from "../support/promised-folder.ts";
import { Tally } from "../support/tally.ts";

const eventsTotal = 120;
/** Number of seeds that also damage a row and a block together. The broker must refuse to start after each of these damages. */
const pairsMax = 4;
const seeds = seedsOf(
  "CHECKS_DAMAGE_SEEDS",
  Array.from({ length: 20 }, (_, index) => index + 1),
);

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
    "seed %i, %s: the broker gives no wrong answer",
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

  it.each(seeds.slice(0, pairsMax))(
    "seed %i: with a damaged row of the index and a damaged block of the chain, the broker refuses to start",
    async (seed) => {
      const random = createRandom(seed);
      using folder = filled.copy(random.pick(["stopped", "killed"]));
      damageRowAndBlock(folder.path, random);
      const { verdict, said } = await judge(folder.path, filled.promised);
      expect(verdict, said).toBe("refused");
      expect(said).toMatch(/store\.sqlite.*chain\.sqlite.*Block \d+ of the chain is damaged/);
    },
  );
});
