import type { Lane, Standing } from "./lane.ts";

/** Share of all connections for receivers that are new or did not answer their last request. */
const doubtfulShareMax = 3 / 4;
/** Share of all connections for receivers that did not answer their last request. */
const failingShareMax = 1 / 2;

/** In the order of their turns. */
const standings: readonly Standing[] = ["new", "proven", "failing"];

/**
 * Receivers with a request that may be sent, in turns. There are three classes: receivers that answered their last request, new ones, and ones that
 * failed. Each class has its turns and its share of the connections, so that hanging receivers block neither the others nor new ones.
 */
export class ReadyLanes {
  readonly #doubtfulMax: number;
  readonly #failingMax: number;
  readonly #lines: Readonly<Record<Standing, Set<Lane>>> = { new: new Set(), proven: new Set(), failing: new Set() };
  readonly #inUse: Record<Standing, number> = { new: 0, proven: 0, failing: 0 };
  /** Index of the class whose turn is next. */
  #turn = 0;

  constructor(connectionsTotalMax: number) {
    this.#doubtfulMax = Math.max(1, Math.floor(connectionsTotalMax * doubtfulShareMax));
    this.#failingMax = Math.max(1, Math.floor(connectionsTotalMax * failingShareMax));
  }

  /** Appends a lane to its class; a lane that is already there keeps its place. */
  add(lane: Lane): void {
    for (const standing of standings) if (standing !== lane.standing) this.#lines[standing].delete(lane);
    this.#lines[lane.standing].add(lane);
  }

  remove(lane: Lane): void {
    for (const standing of standings) this.#lines[standing].delete(lane);
  }

  /** The lane whose turn it is; undefined if none may send. */
  next(): Lane | undefined {
    const inTurn = [...standings.slice(this.#turn), ...standings.slice(0, this.#turn)];
    const standing = inTurn.find((each) => this.#isReady(each));
    if (standing === undefined) return undefined;
    this.#turn = (standings.indexOf(standing) + 1) % standings.length;
    const [lane] = this.#lines[standing];
    return lane;
  }

  /** Whether a lane may send at once: no waiting lane could go before it. */
  mayPass({ standing }: Lane): boolean {
    return this.#mayBegin(standing) && !standings.some((each) => this.#isReady(each));
  }

  /** Counts a request that begins. */
  begin(standing: Standing): void {
    this.#inUse[standing] += 1;
  }

  /** Counts a request that ended; `standing` is the lane's class at its beginning. */
  end(standing: Standing): void {
    this.#inUse[standing] -= 1;
  }

  #isReady(standing: Standing): boolean {
    return this.#lines[standing].size > 0 && this.#mayBegin(standing);
  }

  #mayBegin(standing: Standing): boolean {
    if (standing === "proven") return true;
    if (standing === "failing" && this.#inUse.failing >= this.#failingMax) return false;
    return this.#inUse.new + this.#inUse.failing < this.#doubtfulMax;
  }
}
