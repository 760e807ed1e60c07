import type { Lane, ReceiverHealth } from "./lane.ts";

/** Fraction of all connections for receivers that are new or did not answer their last request. */
const doubtfulShareMax = 3 / 4;
/** Fraction of all connections for receivers that did not answer their last request. */
const failingShareMax = 1 / 2;

/** In the order of their turns. */
const healths: readonly ReceiverHealth[] = ["new", "proven", "failing"];

/**
 * Receivers with a request that may be sent, in turns. There are three classes: receivers that answered their last request, new ones, and ones that
 * failed. The classes take turns, and new and failed receivers get only a part of the connections, so that hanging receivers block neither the others
 * nor new ones.
 */
export class ReadyLanes {
  readonly #doubtfulMax: number;
  readonly #failingMax: number;
  readonly #lines: Readonly<Record<ReceiverHealth, Set<Lane>>> = {
    new: new Set(),
    proven: new Set(),
    failing: new Set(),
  };
  readonly #inUse: Record<ReceiverHealth, number> = { new: 0, proven: 0, failing: 0 };
  /** Index of the class whose turn is next. */
  #turn = 0;

  constructor(connectionsTotalMax: number) {
    this.#doubtfulMax = Math.max(1, Math.floor(connectionsTotalMax * doubtfulShareMax));
    this.#failingMax = Math.max(1, Math.floor(connectionsTotalMax * failingShareMax));
  }

  /** Appends a lane to its class; a lane that is already there keeps its place. */
  add(lane: Lane): void {
    for (const health of healths) if (health !== lane.health) this.#lines[health].delete(lane);
    this.#lines[lane.health].add(lane);
  }

  remove(lane: Lane): void {
    for (const health of healths) this.#lines[health].delete(lane);
  }

  /** The lane whose turn it is; undefined if none may send. */
  next(): Lane | undefined {
    const inTurn = [...healths.slice(this.#turn), ...healths.slice(0, this.#turn)];
    const health = inTurn.find((each) => this.#isReady(each));
    if (health === undefined) return undefined;
    this.#turn = (healths.indexOf(health) + 1) % healths.length;
    const [lane] = this.#lines[health];
    return lane;
  }

  /** Whether a lane may send at once: its class has a free connection, and no waiting lane could go before it. */
  mayPass({ health }: Lane): boolean {
    return this.#mayBegin(health) && !healths.some((each) => this.#isReady(each));
  }

  /** Counts a request that begins. */
  begin(health: ReceiverHealth): void {
    this.#inUse[health] += 1;
  }

  /** Counts a request that ended; `health` is the lane's class at its beginning. */
  end(health: ReceiverHealth): void {
    this.#inUse[health] -= 1;
  }

  #isReady(health: ReceiverHealth): boolean {
    return this.#lines[health].size > 0 && this.#mayBegin(health);
  }

  #mayBegin(health: ReceiverHealth): boolean {
    if (health === "proven") return true;
    if (health === "failing" && this.#inUse.failing >= this.#failingMax) return false;
    return this.#inUse.new + this.#inUse.failing < this.#doubtfulMax;
  }
}
