import { afterAll, describe, expect, it } from "vitest";
import { createRandom, seedsOf } from "../../harness/random.ts";
import { judge, noExcuses } from "../support/judge.ts";
import { fillPromisedFolder } from "../support/promised-folder.ts";
import { findStalePages, putBack } from "../support/stale-pages.ts";
import { Tally } from "../support/tally.ts";

const eventsTotal = 120;
const seeds = seedsOf(
  "CHECKS_DAMAGE_SEEDS",
  Array.from({ length: 5 }, (_, index) => index + 1),
);
const filled = await fillPromisedFolder(eventsTotal);
const earlier = filled.path("earlier");
const pages = findStalePages(earlier, filled.path("stopped"));
const ofSubscriptions = pages.filter(({ of }) => /^(sqlite_autoindex_)?subscriptions/.test(of));

describe("pages of the store that the disk did not write never lead to a wrong answer", () => {
  const tally = new Tally("stale pages");
  afterAll(() => {
    filled[Symbol.dispose]();
    tally.print();
  });

  it("the pages under test include the first pages of the small tables", () => {
    expect(pages.map(({ of }) => of)).toEqual(expect.arrayContaining(["groups", "topics", "subscriptions"]));
  });

  it.each(pages.map((page) => [page.number, page.of, page] as const))(
    "with stale page %i (first page of: %s), the broker gives no wrong answer",
    async (_, __, page) => {
      using folder = filled.copy("stopped");
      putBack(page, { earlier, folder: folder.path });
      const { verdict, said } = await judge(folder.path, filled.promised);
      tally.count(verdict);
      expect(verdict, said).not.toMatch(/^wrong/);
    },
  );

  it.each(seeds)("with several stale pages (seed %i), the broker gives no wrong answer", async (seed) => {
    const random = createRandom(seed);
    const chance = random.fraction();
    const stale = pages.filter(() => random.fraction() < chance);
    using folder = filled.copy("stopped");
    for (const page of stale) putBack(page, { earlier, folder: folder.path });
    // If a table and all its database indexes are stale, they agree, and nothing else knows the newer rows.
    const mayForgetSubscriptions = ofSubscriptions.every((page) => stale.includes(page));
    const { verdict, said } = await judge(folder.path, filled.promised, { ...noExcuses, mayForgetSubscriptions });
    tally.count(verdict);
    expect(verdict, `${stale.map(({ of }) => of).join(", ")}: ${said}`).not.toMatch(/^wrong/);
  });
});
