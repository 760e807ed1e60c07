import { createDeferred } from "../../lib/deferred.ts";
import { untilAborted } from "../../lib/until-aborted.ts";
import type { Ledger } from "../../ports/ledger.ts";

/** Lets a test hold back the blocks that the nodes of a cluster read from their chain. */
export class HeldBlocks {
  #held: Promise<void> = Promise.resolve();

  /** Pass it to `TestCluster.start`. */
  readonly toLedger = (ledger: Ledger): Ledger => {
    const follow = ledger.follow.bind(ledger);
    const untilReleased = (signal: AbortSignal): Promise<void> => untilAborted(this.#held, signal);
    ledger.follow = async function* (after, signal) {
      for await (const step of follow(after, signal)) {
        await untilReleased(signal);
        yield step;
      }
    };
    return ledger;
  };

  /** No node reads another block until the returned function is called. */
  hold(): () => void {
    const { promise, resolve } = createDeferred<void>();
    this.#held = promise;
    return resolve;
  }
}
