import { type SharedLayer, StateHistory } from "../state/state-history.ts";

/** Asks the chain's thread for the layers of blocks after `after`; for all layers that the thread keeps if `after` is undefined. */
export type HistoryRequest = (after: bigint | undefined) => void;

/** The reader's copy of the state history that the chain's thread keeps. It asks for new layers only when a request needs an older state. */
export class HistoryFollower {
  readonly #history = new StateHistory();
  readonly #request: HistoryRequest;
  #resolve: (() => void) | undefined;

  constructor(request: HistoryRequest) {
    this.#request = request;
  }

  /** Returns the history up to this committed block, or further. It reaches back as far as the history of the chain's thread. */
  async readUpTo(blockNumber: bigint): Promise<StateHistory> {
    const { newest } = this.#history;
    if (newest === undefined || newest < blockNumber) {
      await new Promise<void>((resolve) => {
        this.#resolve = resolve;
        this.#request(newest);
      });
    }
    return this.#history;
  }

  /** Takes the layers with which the chain's thread answered the request. */
  take(layers: readonly SharedLayer[]): void {
    this.#history.follow(layers);
    this.#resolve?.();
  }
}
