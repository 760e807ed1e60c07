import type { Logger } from "../../../lib/logger.ts";
import { ReportedTrouble } from "../../../lib/reported-trouble.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Outage } from "../../../ports/ledger.ts";
import { isUnanswered, RpcFailure } from "../endpoint/rpc-failure.ts";

/** How long a block may be unreadable before it counts as an outage, in milliseconds. */
const toleranceMs = 5_000;

interface Stall {
  /** What cannot be read: a block, in words. */
  readonly name: string;
  /** On the monotonic clock. */
  readonly since: number;
  /** By the wall clock, for the message. */
  readonly date: number;
  /** Whether the endpoint answered, but not with the block. */
  readonly isAnswered: boolean;
}

/** Measures how long one reader has waited for the same block. */
export class StalledReading {
  readonly #clock: Clock;
  readonly #trouble: ReportedTrouble;
  #stall: Stall | undefined;

  constructor({ clock, logger }: { readonly clock: Clock; readonly logger: Logger }) {
    this.#clock = clock;
    this.#trouble = new ReportedTrouble(logger, "block not read, trying again", "blocks read again");
  }

  /** Undefined while blocks are read, or have failed only briefly. */
  get outage(): Outage | undefined {
    const stall = this.#stall;
    if (stall === undefined || this.#clock.monotonic() - stall.since < toleranceMs) return undefined;
    const time = new Date(stall.date).toISOString();
    return { reason: `cannot read ${this.#trouble.reason} (since ${time})`, since: stall.since };
  }

  /** Whether the endpoint answers but does not return the block: a publish now would time out. */
  get isRefused(): boolean {
    return this.outage !== undefined && this.#stall?.isAnswered === true;
  }

  /** Call it when the block of this name could not be read. */
  failed(name: string, error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    this.#trouble.failed(new Error(`${name}: ${reason}`, { cause: error }));
    const isAnswered = !(error instanceof RpcFailure && isUnanswered(error));
    const now = { name, since: this.#clock.monotonic(), date: this.#clock.now() };
    this.#stall = { ...(this.#stall?.name === name ? this.#stall : now), isAnswered };
  }

  done(): void {
    this.#stall = undefined;
    this.#trouble.done();
  }
}
