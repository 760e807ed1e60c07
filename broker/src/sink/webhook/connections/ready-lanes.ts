import type { Lane } from "./lane.ts";

/** The part of all connections that receivers may hold which are new, or did not answer their last request. */
const doubtfulShareMax = 3 / 4;

/**
 * Receivers whose next request may go, in turns. Those that answered their last request and the doubtful rest take every other turn, and the
 * doubtful ones leave a part of the connections to the others, so that receivers that hang cannot hold up those that answer.
 */
export class ReadyLanes {
  readonly #doubtfulMax: number;
  readonly #proven = new Set<Lane>();
  readonly #doubtful = new Set<Lane>();
  #doubtfulInUse = 0;
  #isTurnOfDoubtful = false;

  constructor(connectionsTotalMax: number) {
    this.#doubtfulMax = Math.max(1, Math.floor(connectionsTotalMax * doubtfulShareMax));
  }

  /** At the end of its line; one that is in it keeps its place. */
  add(lane: Lane): void {
    (lane.isProven ? this.#doubtful : this.#proven).delete(lane);
    (lane.isProven ? this.#proven : this.#doubtful).add(lane);
  }

  remove(lane: Lane): void {
    this.#proven.delete(lane);
    this.#doubtful.delete(lane);
  }

  /** Whose turn it is; undefined when nobody may go. */
  next(): Lane | undefined {
    const [proven] = this.#proven;
    const [doubtful] = this.#doubtfulInUse < this.#doubtfulMax ? this.#doubtful : [];
    this.#isTurnOfDoubtful = !this.#isTurnOfDoubtful;
    return this.#isTurnOfDoubtful ? (doubtful ?? proven) : (proven ?? doubtful);
  }

  /** Whether a request of the lane may go while somebody else may wait: nobody does who could go before it. */
  mayPass({ isProven }: Lane): boolean {
    if (this.#proven.size > 0) return false;
    return isProven || (this.#doubtful.size === 0 && this.#doubtfulInUse < this.#doubtfulMax);
  }

  /** A request begins, of a lane that is proven or not. */
  begin(isProven: boolean): void {
    if (!isProven) this.#doubtfulInUse += 1;
  }

  /** A request ended of a lane that was proven, or not, when it began. */
  end(wasProven: boolean): void {
    if (!wasProven) this.#doubtfulInUse -= 1;
  }
}
