import type { Clock } from "../../../ports/clock.ts";
import { pause } from "../../../lib/pause.ts";
import type { InFlight } from "./in-flight.ts";
import type { JournalRecovery } from "./journal-recovery.ts";
import type { TransactionQueue } from "./transaction-queue.ts";

/** Pause between two checks of the open transactions, in milliseconds. */
const lookMs = 50;

export interface SettlementOptions {
  readonly queue: Pick<TransactionQueue, "all">;
  readonly inFlight: Pick<InFlight, "all">;
  readonly recovery: Pick<JournalRecovery, "isBringingBack">;
  readonly clock: Clock;
}

export class Settlement {
  readonly #options: SettlementOptions;

  constructor(options: SettlementOptions) {
    this.#options = options;
  }

  /** True once each transaction requested before the call is final or can never be included; false if `signal` aborts first. */
  async wait(signal: AbortSignal): Promise<boolean> {
    const { queue, inFlight, recovery, clock } = this.#options;
    while (recovery.isBringingBack && !signal.aborted) await pause(clock, lookMs, signal);
    const open = [...queue.all(), ...inFlight.all()];
    while (open.some(({ state }) => !state.isDone) && !signal.aborted) await pause(clock, lookMs, signal);
    return !signal.aborted;
  }
}
