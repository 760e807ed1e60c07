import { type SharedLayer, StateHistory } from "../state/state-history.ts";

/** Asks the chain's thread for the trie nodes that blocks later than `after` overwrote; if it is undefined, for all overwritten ones that the thread keeps. */
export type HistoryRequest = (after: bigint | undefined) => void;

/** The reader's copy of the state history that the chain's thread keeps, brought up to date when a request needs an older state. */
export class HistoryFollower {
  readonly #history = new StateHistory();
  readonly #request: HistoryRequest;
  #resolve: (() => void) | undefined;

  constructor(request: HistoryRequest) {
    this.#request = request;
  }

  /** The history, at least up to this committed block, as far back as the chain's thread keeps it. */
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

  /** Receives the answer to the request. */
  take(layers: readonly SharedLayer[]): void {
    this.#history.follow(layers);
    this.#resolve?.();
  }
}
