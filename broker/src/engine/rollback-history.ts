import type { Clock } from "../ports/clock.ts";

/** Maximum number of rollbacks that this node remembers for a group; it drops the oldest. */
const rollBacksKeptMax = 100;

/** A rollback of a group's index that this node has seen. */
export interface SeenRollBack {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** The newest block of the index before the rollback. */
  readonly fromBlock: number;
  /** The newest block of the index after the rollback; -1 for an empty index. */
  readonly toBlock: number;
  /** Number of events that the rollback removed; undefined if another node performed it. */
  readonly events: number | undefined;
}

/** The newest rollbacks of a group since this node started. */
export class RollBackHistory {
  readonly #clock: Pick<Clock, "now">;
  #seen: readonly SeenRollBack[] = [];

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  note(seen: Omit<SeenRollBack, "at">): void {
    this.#seen = [{ at: this.#clock.now(), ...seen }, ...this.#seen].slice(0, rollBacksKeptMax);
  }

  /** Newest first. */
  list(): readonly SeenRollBack[] {
    return this.#seen;
  }
}
