import { expect, it } from "vitest";
import { createDeferred, type Deferred } from "./deferred.ts";
import { GroupCommit } from "./group-commit.ts";

const poison = "poison";

/** Commits that end when the test says so. */
class Commits {
  readonly groups: (readonly string[])[] = [];
  readonly #ends: Deferred<void>[] = [];

  readonly commit = async (items: readonly string[]): Promise<readonly string[]> => {
    this.groups.push(items);
    const end = createDeferred<void>();
    this.#ends.push(end);
    await end.promise;
    if (items.includes(poison)) throw new Error(`not committed: ${items.join()}`);
    return items.map((item) => `${item} done`);
  };

  async endNext(): Promise<void> {
    await Promise.resolve(); // The commit of this turn begins.
    this.#ends.shift()?.resolve();
    await new Promise(setImmediate);
  }
}

it("commits items that arrive together, or during a commit, in one commit, up to the limit", async () => {
  const commits = new Commits();
  const grouped = new GroupCommit({ commit: commits.commit, itemsMax: 3, mayBeCausedByOneItem: () => false });
  const results = ["a", "b", "c", "d"].map((item) => grouped.add(item));
  await Promise.resolve();
  expect(commits.groups).toEqual([["a", "b", "c"]]);
  results.push(grouped.add("e"));
  await commits.endNext();
  expect(commits.groups).toEqual([
    ["a", "b", "c"],
    ["d", "e"],
  ]);
  await commits.endNext();
  expect(await Promise.all(results)).toEqual(["a done", "b done", "c done", "d done", "e done"]);
  const later = grouped.add("f");
  await commits.endNext();
  expect(await later).toBe("f done");
});

it.each([true, false])(
  "commits the items of a failed group one by one if a single item may be the cause: %s",
  async (mayBeCausedByOneItem) => {
    const commits = new Commits();
    const grouped = new GroupCommit({
      commit: commits.commit,
      itemsMax: 9,
      mayBeCausedByOneItem: () => mayBeCausedByOneItem,
    });
    const results = Promise.allSettled(["a", "b", poison, "c"].map((item) => grouped.add(item)));
    for (let ends = 0; ends < 5; ends += 1) await commits.endNext();
    const statuses = (await results).map(({ status }) => status);
    expect(commits.groups.slice(1)).toEqual(mayBeCausedByOneItem ? [["a"], ["b"], [poison], ["c"]] : []);
    const others = mayBeCausedByOneItem ? "fulfilled" : "rejected";
    expect(statuses).toEqual([others, others, "rejected", others]);
  },
);
