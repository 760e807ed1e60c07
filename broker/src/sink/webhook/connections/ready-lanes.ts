import type { Lane, Standing } from "./lane.ts";

/** The part of all connections that receivers may hold which are new, or did not answer their last request. */
const doubtfulShareMax = 3 / 4;
/** The part of them that receivers may hold which did not answer their last request. */
const failingShareMax = 1 / 2;

/** In the order of their turns. */
const standings: readonly Standing[] = ["new", "proven", "failing"];

/**
 * Receivers whose next request may go, in turns. Those that answered their last request, those that are new and those that failed have turns
 * and a share of the connections each, so that receivers that hang hold up neither those that answer nor those that come new.
 */
export class ReadyLanes {
  readonly #doubtfulMax: number;
  readonly #failingMax: number;
  readonly #lines: Readonly<Record<Standing, Set<Lane>>> = { new: new Set(), proven: new Set(), failing: new Set() };
  readonly #inUse: Record<Standing, number> = { new: 0, proven: 0, failing: 0 };
  /** Place of whose turn is next. */
  #turn = 0;

  constructor(connectionsTotalMax: number) {
    this.#doubtfulMax = Math.max(1, Math.floor(connectionsTotalMax * doubtfulShareMax));
    this.#failingMax = Math.max(1, Math.floor(connectionsTotalMax * failingShareMax));
  }

  /** At the end of its line; one that is in it keeps its place. */
  add(lane: Lane): void {
    for (const standing of standings) if (standing !== lane.standing) this.#lines[standing].delete(lane);
    this.#lines[lane.standing].add(lane);
  }

  remove(lane: Lane): void {
    for (const standing of standings) this.#lines[standing].delete(lane);
  }

  /** Whose turn it is; undefined when nobody may go. */
  next(): Lane | undefined {
    const inTurn = [...standings.slice(this.#turn), ...standings.slice(0, this.#turn)];
    const standing = inTurn.find((each) => this.#isReady(each));
    if (standing === undefined) return undefined;
    this.#turn = (standings.indexOf(standing) + 1) % standings.length;
    const [lane] = this.#lines[standing];
    return lane;
  }

  /** Whether a request of the lane may go while somebody else may wait: nobody does who could go before it. */
  mayPass({ standing }: Lane): boolean {
    return this.#mayBegin(standing) && !standings.some((each) => this.#isReady(each));
  }

  /** A request begins. */
  begin(standing: Standing): void {
    this.#inUse[standing] += 1;
  }

  /** A request ended of a lane that had this standing when it began. */
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
