import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createRandom, seedsOf } from "../../harness/random.ts";
import { applyDamage, chooseDamage, describeDamage, excusesOf } from "../support/damage.ts";
import { judge } from "../support/judge.ts";
import { fillPromisedFolder, type PromisedFolder } from "../support/promised-folder.ts";
import { Tally } from "../support/tally.ts";

const eventsTotal = 120;
const seeds = seedsOf(
  "CHECKS_DAMAGE_SEEDS",
  Array.from({ length: 22 }, (_, index) => 1 + index),
).filter((seed) => chooseDamage(createRandom(seed)).hits.every(({ file }) => file.startsWith("chain.sqlite")));

describe("a damaged chain that alone holds the old events never leads to a wrong answer", () => {
  const tally = new Tally("damage of dropped events");
  let filled: PromisedFolder;
  beforeAll(async () => {
    filled = await fillPromisedFolder(eventsTotal, { isDropped: true });
  });
  afterAll(() => {
    filled[Symbol.dispose]();
    tally.print();
  });

  it.each(seeds.map((seed) => [seed, describeDamage(chooseDamage(createRandom(seed)))] as const))(
    "after damage to the chain (seed %i, %s), the broker gives no wrong answer",
    async (seed) => {
      const random = createRandom(seed);
      const damage = chooseDamage(random);
      using folder = filled.copy(damage.state);
      applyDamage(damage, { folder: folder.path, earlier: filled.path("earlier"), random });
      const excuses = excusesOf(damage);
      // The store has dropped its copies, so damage of the chain alone may lose events.
      const mayLoseBoth = excuses.mayLoseBoth || excuses.isChainHit;
      const { verdict, said } = await judge(folder.path, filled.promised, { ...excuses, mayLoseBoth });
      tally.count(verdict);
      expect(verdict, said).not.toMatch(/^wrong/);
    },
  );
});
