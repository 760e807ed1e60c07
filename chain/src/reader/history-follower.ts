import { type SharedLayer, StateHistory } from "../state/state-history.ts";

/** Asks the chain's thread for what the blocks after one overwrote. */
export type HistoryRequest = (after: bigint | undefined) => void;

/** The history that the chain's thread keeps, fetched when an older state is asked for. */
export class HistoryFollower {
  readonly #history = new StateHistory();
  readonly #request: HistoryRequest;
  #resolve: (() => void) | undefined;

  constructor(request: HistoryRequest) {
    this.#request = request;
  }

  /** The history with every block up to one that is committed, as far back as it is kept. */
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

  /** Takes the answer to the request. */
  take(layers: readonly SharedLayer[]): void {
    this.#history.follow(layers);
    this.#resolve?.();
  }
}
