import { BrokerError } from "@stele/wire";
import type { TopicName } from "../../domain/topic-name.ts";
import { createDeferred } from "../../lib/deferred.ts";
import type { Semaphore } from "../../lib/semaphore.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Ledger, TopicOpening } from "../../ports/ledger.ts";
import type { OnSettled } from "../broker.ts";
import { Deadline } from "../time.ts";

/**
 * Maximum number of publishes of one group that open their topics at the same time. An opening costs the chain as much as hundreds of small events, and
 * delays publishes to other topics. This many openings with the longest names take 11 million gas.
 */
export const openingPublishesMax = 32;

export interface FirstPublishOptions {
  readonly ledger: Pick<Ledger, "prepareOpening">;
  /** Limits the openings of the group. */
  readonly openings: Semaphore;
  /** Throws or rejects if the publish may not open its topic. */
  readonly authorizeOpening: () => void | Promise<void>;
  readonly clock: Clock;
  /** Longest wait for a turn after the publish came, in milliseconds. */
  readonly waitMsMax: number;
}

/** A publish that opens its topic if nobody has opened it. It occupies one of the group's openings until it has settled. */
export class FirstPublish {
  readonly #options: FirstPublishOptions;
  readonly #settled = createDeferred<void>();
  readonly #waitUntil: number;

  constructor(options: FirstPublishOptions) {
    this.#options = options;
    this.#waitUntil = options.clock.monotonic() + options.waitMsMax;
  }

  /**
   * Calls `authorizeOpening`, waits for its turn, then prepares the opening.
   * @throws BrokerError 200300 if the turn does not come in time; what `authorizeOpening` and `Ledger.prepareOpening` throw.
   */
  async open(name: TopicName): Promise<TopicOpening> {
    const { ledger, authorizeOpening } = this.#options;
    const authorizing = authorizeOpening();
    if (authorizing !== undefined) await authorizing;
    if (!(await this.#takeTurn())) throw new BrokerError("busy", { details: "too many publishes open topics; retry" });
    return ledger.prepareOpening(name);
  }

  /** Takes one of the group's openings until the publish has settled; false if none is free in time. */
  async #takeTurn(): Promise<boolean> {
    const { openings, clock } = this.#options;
    const leftMs = this.#waitUntil - clock.monotonic();
    if (leftMs <= 0) return false;
    using deadline = new Deadline(clock, leftMs);
    const turn = createDeferred<boolean>();
    const occupied = openings.run(() => {
      turn.resolve(true);
      return this.#settled.promise;
    }, deadline.signal);
    void occupied.then(() => turn.resolve(false)); // After a turn, this changes nothing.
    return await turn.promise;
  }

  /** Returns a callback for the outcome of the publish: it frees the opening for others, then calls `onSettled`. */
  follow(onSettled: OnSettled): OnSettled {
    return (outcome) => {
      this.#settled.resolve();
      onSettled(outcome);
    };
  }
}
