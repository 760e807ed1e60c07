import type { Logger } from "../../../lib/logger.ts";
import { ReportedTrouble } from "../../../lib/reported-trouble.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Outage } from "../../../ports/ledger.ts";
import { isUnanswered, RpcFailure } from "../endpoint/rpc-failure.ts";

/** How long a block may be unreadable before it counts as an outage, in milliseconds. */
const toleranceMs = 5_000;

interface Stall {
  readonly blockNumber: number;
  /** On the monotonic clock. */
  readonly since: number;
  /** By the time of day, for people. */
  readonly date: number;
  /** Whether the endpoint answered, and what it answered is of no use. */
  readonly isAnswered: boolean;
}

/** Notes how long one reader of the chain has stood before the same block. */
export class StalledReading {
  readonly #clock: Clock;
  readonly #trouble: ReportedTrouble;
  #stall: Stall | undefined;

  constructor({ clock, logger }: { readonly clock: Clock; readonly logger: Logger }) {
    this.#clock = clock;
    this.#trouble = new ReportedTrouble(logger, "block not read, trying again", "blocks read again");
  }

  /** Undefined while blocks are read, or fail for a moment only. */
  get outage(): Outage | undefined {
    const stall = this.#stall;
    if (stall === undefined || this.#clock.monotonic() - stall.since < toleranceMs) return undefined;
    const time = new Date(stall.date).toISOString();
    return { reason: `cannot read ${this.#trouble.reason} (since ${time})`, since: stall.since };
  }

  /** Whether the endpoint is there and still does not give the block: whatever is published now is not read in time. */
  get isRefused(): boolean {
    return this.outage !== undefined && this.#stall?.isAnswered === true;
  }

  /** The block could not be read. */
  failed(blockNumber: number, error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    this.#trouble.failed(new Error(`block ${blockNumber}: ${reason}`, { cause: error }));
    const isAnswered = !(error instanceof RpcFailure && isUnanswered(error));
    const now = { blockNumber, since: this.#clock.monotonic(), date: this.#clock.now() };
    this.#stall = { ...(this.#stall?.blockNumber === blockNumber ? this.#stall : now), isAnswered };
  }

  done(): void {
    this.#stall = undefined;
    this.#trouble.done();
  }
}
