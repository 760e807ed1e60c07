import type { TopicName } from "../../domain/topic-name.ts";
import { Cancellation } from "../../lib/cancellation.ts";
import { createDeferred } from "../../lib/deferred.ts";
import type { Semaphore } from "../../lib/semaphore.ts";
import type { Ledger, TopicOpening } from "../../ports/ledger.ts";
import type { OnSettled } from "../broker.ts";

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
  readonly mayOpen: () => void | Promise<void>;
}

const neverAborted = new Cancellation();

/** A publish that opens its topic if nobody has opened it. It occupies one of the group's openings until it has settled. */
export class FirstPublish {
  readonly #options: FirstPublishOptions;
  readonly #settled = createDeferred<void>();

  constructor(options: FirstPublishOptions) {
    this.#options = options;
  }

  /** Waits for its turn, then prepares the opening. @throws what `mayOpen` throws, and BrokerError as `Ledger.prepareOpening` does. */
  async open(name: TopicName): Promise<TopicOpening> {
    const { ledger, openings, mayOpen } = this.#options;
    const allowed = mayOpen();
    if (allowed !== undefined) await allowed;
    const turn = createDeferred<void>();
    void openings.run(() => {
      turn.resolve();
      return this.#settled.promise;
    }, neverAborted);
    await turn.promise;
    return ledger.prepareOpening(name);
  }

  /** Returns a callback for the outcome of the publish: it frees the opening for others, then calls `onSettled`. */
  follow(onSettled: OnSettled): OnSettled {
    return (outcome) => {
      this.#settled.resolve();
      onSettled(outcome);
    };
  }
}
