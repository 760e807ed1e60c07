import { createDeferred, type Deferred } from "./deferred.ts";

export interface GroupCommitOptions<Item, Result> {
  /** Commits the items; returns a result for each, in order. */
  readonly commit: (items: readonly Item[]) => Promise<readonly Result[]>;
  /** Maximum number of items in one commit. */
  readonly itemsMax: number;
  /** Whether a single item may have caused the error of its group. If so, each item of the group is committed again alone. */
  readonly mayBeCausedByOneItem: (error: unknown) => boolean;
}

interface Waiting<Item, Result> extends Deferred<Result> {
  readonly item: Item;
}

/** Commits items in groups: one commit at a time; items that arrive together, or during a commit, are committed together in the next one. */
export class GroupCommit<Item, Result> {
  readonly #options: GroupCommitOptions<Item, Result>;
  #waiting: Waiting<Item, Result>[] = [];
  #isRunning = false;

  constructor(options: GroupCommitOptions<Item, Result>) {
    this.#options = options;
  }

  /** Returns the result of the item once its commit has ended. */
  add(item: Item): Promise<Result> {
    const deferred = createDeferred<Result>();
    this.#waiting.push({ ...deferred, item });
    if (!this.#isRunning) void this.#runAll();
    return deferred.promise;
  }

  async #runAll(): Promise<void> {
    this.#isRunning = true;
    await Promise.resolve(); // Items that callers add one right after another go into one commit.
    while (this.#waiting.length > 0) await this.#run(this.#waiting.splice(0, this.#options.itemsMax));
    this.#isRunning = false;
  }

  /** Never rejects. */
  async #run(group: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await this.#options.commit(group.map(({ item }) => item));
      for (const [index, result] of results.entries()) group[index]?.resolve(result);
    } catch (error) {
      if (group.length > 1 && this.#options.mayBeCausedByOneItem(error))
        for (const one of group) await this.#run([one]);
      else for (const { reject } of group) reject(error);
    }
  }
}
