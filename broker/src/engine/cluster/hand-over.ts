import type { NodeId } from "../../domain/node.ts";
import type { SubscriptionId } from "../../domain/subscription.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Coordinator, SubscriptionKey } from "../../ports/coordinator.ts";
import type { ProgressWriter } from "../deliver/progress-writer.ts";
import type { Dispatcher } from "../dispatch/dispatcher.ts";
import { Deadline, untilAborted } from "../time.ts";

/** How long an attempt under way may take when another node waits for its subscription. */
export const handOverGraceMs = 1_000;

/** How long workers that end at once are waited for before they are told from those with a slow receiver. */
const soonMs = 50;
/** Wait between two looks at what others ask for while workers of a stopping node end. */
const lookEveryMs = 100;

export interface HandOverParts {
  readonly coordinator: Coordinator;
  readonly dispatcher: Dispatcher;
  readonly progressWriter: ProgressWriter;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Ends workers and gives their subscriptions away, so that none stands still for the slow receiver of another one. */
export class HandOver {
  readonly #parts: HandOverParts;

  constructor(parts: HandOverParts) {
    this.#parts = parts;
  }

  /** Gives to the nodes that ask: what ends at once first, the rest when all of it has ended. */
  async give(keys: readonly SubscriptionKey[]): Promise<void> {
    const ended: SubscriptionKey[] = [];
    const ending = keys.map(async (key) => {
      await this.#parts.dispatcher.remove(key.id, handOverGraceMs);
      ended.push(key);
    });
    const all = Promise.all(ending);
    try {
      await this.#wait(all, soonMs);
      await this.#write(ended.splice(0));
    } finally {
      await all;
    }
    await this.#write(ended);
  }

  /**
   * Ends all of these workers within `graceMs`, or until `signal` aborts. What others have asked for goes to them as its worker ends; the
   * rest they get when this node leaves.
   */
  async giveAll(
    { nodeId, ids }: { readonly nodeId: NodeId | undefined; readonly ids: readonly SubscriptionId[] },
    { graceMs, signal }: { readonly graceMs: number; readonly signal: AbortSignal },
  ): Promise<void> {
    const ending = new Set(ids);
    const all = Promise.all(
      ids.map(async (id) => {
        await this.#parts.dispatcher.remove(id, graceMs);
        ending.delete(id);
      }),
    );
    await this.#wait(all, soonMs);
    while (ending.size > 0) {
      if (nodeId !== undefined) await untilAborted(this.#giveEnded(nodeId, ending), signal);
      await this.#wait(all, lookEveryMs);
    }
  }

  async #giveEnded(nodeId: NodeId, ending: ReadonlySet<SubscriptionId>): Promise<void> {
    const { coordinator, logger } = this.#parts;
    try {
      const holdings = await coordinator.listHoldings(nodeId);
      const free = holdings.filter(({ id, wantedBy }) => wantedBy !== undefined && !ending.has(id));
      await this.#write(free.map(({ id, epoch }) => ({ id, epoch })));
    } catch (error) {
      logger.warn("subscriptions not handed over before leaving", { error });
    }
  }

  async #write(keys: readonly SubscriptionKey[]): Promise<void> {
    if (keys.length === 0) return;
    await this.#parts.progressWriter.flush();
    await this.#parts.coordinator.handOver(keys);
  }

  async #wait(all: Promise<unknown>, delayMs: number): Promise<void> {
    using deadline = new Deadline(this.#parts.clock, delayMs);
    await untilAborted(all, deadline.signal);
  }
}
