import type { Clock } from "../../ports/clock.ts";

/** How long health warns of a reorganisation of final blocks. */
const warningMs = 3_600_000;

/** How a group's index is doing on this node, whoever writes it. */
export class IndexHealth {
  readonly #clock: Clock;
  #failure: string | undefined;
  #warning: { readonly at: number; readonly text: string } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Why the index does not follow; undefined while it does. */
  get failure(): string | undefined {
    return this.#failure;
  }

  /** What an operator should know of the last hour; undefined when there is nothing. */
  get warning(): string | undefined {
    const isRecent = this.#warning !== undefined && this.#clock.monotonic() - this.#warning.at < warningMs;
    return isRecent ? this.#warning?.text : undefined;
  }

  failed(error: unknown): void {
    this.#failure = error instanceof Error ? error.message : "unknown failure";
  }

  follows(): void {
    this.#failure = undefined;
  }

  /** Tells of what happened in the last hour. */
  warn(text: string): void {
    this.#warning = { at: this.#clock.monotonic(), text: `in the last hour ${text}` };
  }
}
