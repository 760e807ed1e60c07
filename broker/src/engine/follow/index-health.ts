import { isBrokerError } from "@stele/wire";
import type { Clock } from "../../ports/clock.ts";

/** How long health shows a warning, in milliseconds. */
const warningMs = 3_600_000;

/** Health of a group's index at this node, whichever node writes it. */
export class IndexHealth {
  readonly #clock: Clock;
  #failure: string | undefined;
  #isStoreAway = false;
  #warning: { readonly at: number; readonly text: string } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Why the index does not follow the chain; undefined while it does. */
  get failure(): string | undefined {
    return this.#failure;
  }

  /** Whether this node cannot reach the store, although other nodes may. */
  get isStoreAway(): boolean {
    return this.#isStoreAway;
  }

  /** The newest warning of the last hour; undefined if there is none. */
  get warning(): string | undefined {
    const isRecent = this.#warning !== undefined && this.#clock.monotonic() - this.#warning.at < warningMs;
    return isRecent ? this.#warning?.text : undefined;
  }

  failed(error: unknown): void {
    this.#failure = error instanceof Error ? error.message : "unknown failure";
    this.#isStoreAway = isBrokerError(error, "storeUnreachable");
  }

  follows(): void {
    this.#failure = undefined;
    this.#isStoreAway = false;
  }

  warn(text: string): void {
    this.#warning = { at: this.#clock.monotonic(), text: `in the last hour ${text}` };
  }
}
