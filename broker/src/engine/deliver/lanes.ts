import type { CancelSignal } from "../../lib/cancellation.ts";
import type { Clock } from "../../ports/clock.ts";

/** An item that waits in a lane. */
export interface LaneItem {
  /** Items of one lane are delivered in order. */
  readonly lane: string;
  /** Size of the item in a request. */
  readonly bytes: number;
  /** Whether to deliver this item, the first of its lane, without others: it has failed attempts that count, and the others have none. */
  readonly isAlone: boolean;
}

export interface LanesOptions<Item extends LaneItem> {
  readonly clock: Pick<Clock, "after">;
  /** Maximum number of lanes that deliver at the same time. */
  readonly concurrency: number;
  /** Maximum number of items in one delivery. */
  readonly itemsMax: number;
  /** Maximum bytes of one delivery, if it has more than one item. */
  readonly bytesMax: number;
  /** How long a lane with fewer than `itemsMax` items waits for more, in milliseconds. */
  readonly waitMs: number;
  /** Whether no more items come until a delivery has ended: then no lane waits for more. */
  readonly isFull: () => boolean;
  /** After this signal has aborted, no lane begins a delivery. */
  readonly stopping: CancelSignal;
  /** Delivers items of one lane; returns false if nothing more may be delivered. Must not reject. */
  readonly deliver: (items: readonly Item[]) => Promise<boolean>;
}

interface Lane<Item> {
  readonly name: string;
  readonly queue: Item[];
  isBusy: boolean;
  /** Whether the wait for more items has ended. */
  isDue: boolean;
  cancelWait: (() => void) | undefined;
}

/** Delivers the items of each lane in order, one delivery after another, and several lanes at the same time. Lanes take turns. */
export class Lanes<Item extends LaneItem> {
  readonly #options: LanesOptions<Item>;
  readonly #lanes = new Map<string, Lane<Item>>();
  /** Lanes that wait for their turn, the oldest first. */
  readonly #ready = new Set<Lane<Item>>();
  readonly #running = new Set<Promise<void>>();
  #hasEnded = false;

  constructor(options: LanesOptions<Item>) {
    this.#options = options;
  }

  add(item: Item): void {
    const lane = this.#laneOf(item.lane);
    lane.queue.push(item);
    if (!lane.isBusy) this.#consider(lane);
    if (this.#options.isFull()) this.#endWaits();
    this.#runReady();
  }

  /** Begins no further delivery, and returns when none is in progress. Items that still wait are not delivered. */
  async end(): Promise<void> {
    this.#hasEnded = true;
    for (const lane of this.#lanes.values()) lane.cancelWait?.();
    await Promise.all(this.#running);
  }

  #laneOf(name: string): Lane<Item> {
    const known = this.#lanes.get(name);
    if (known !== undefined) return known;
    const lane: Lane<Item> = { name, queue: [], isBusy: false, isDue: false, cancelWait: undefined };
    this.#lanes.set(name, lane);
    return lane;
  }

  /** Queues an idle lane for its turn, at once or when its wait for more items ends. */
  #consider(lane: Lane<Item>): void {
    const { clock, waitMs } = this.#options;
    if (waitMs === 0 || lane.isDue || this.#isComplete(lane)) {
      this.#ready.add(lane);
      return;
    }
    lane.cancelWait ??= clock.after(waitMs, () => {
      lane.cancelWait = undefined;
      lane.isDue = true;
      this.#ready.add(lane);
      this.#runReady();
    });
  }

  /** Whether the next delivery of the lane can get no more items. */
  #isComplete({ queue }: Lane<Item>): boolean {
    const { itemsMax, isFull } = this.#options;
    return queue.length >= itemsMax || queue[0]?.isAlone === true || isFull();
  }

  #endWaits(): void {
    for (const lane of this.#lanes.values()) if (lane.cancelWait !== undefined) this.#consider(lane);
  }

  #runReady(): void {
    for (const lane of this.#ready) {
      if (this.#isOver || this.#running.size >= this.#options.concurrency) return;
      this.#ready.delete(lane);
      const run = this.#run(lane).finally(() => {
        this.#running.delete(run);
        this.#runReady();
      });
      this.#running.add(run);
    }
  }

  /**
   * Makes one delivery of a lane. If more items wait, the lane's next turn comes after the other lanes. A busy lane has no timer: the timer would begin a
   * second delivery.
   */
  async #run(lane: Lane<Item>): Promise<void> {
    lane.cancelWait?.();
    lane.cancelWait = undefined;
    lane.isBusy = true;
    lane.isDue = false;
    const goesOn = await this.#options.deliver(lane.queue.splice(0, this.#countOf(lane)));
    lane.isBusy = false;
    if (!goesOn) this.#hasEnded = true;
    else if (lane.queue.length > 0) this.#consider(lane);
    else this.#lanes.delete(lane.name);
  }

  #countOf({ queue }: Lane<Item>): number {
    const { itemsMax, bytesMax } = this.#options;
    let [count, bytes] = [0, 0];
    for (const item of queue) {
      bytes += item.bytes;
      if (count > 0 && (count >= itemsMax || bytes > bytesMax)) break;
      count += 1;
      if (item.isAlone) break;
    }
    return count;
  }

  get #isOver(): boolean {
    return this.#hasEnded || this.#options.stopping.aborted;
  }
}
