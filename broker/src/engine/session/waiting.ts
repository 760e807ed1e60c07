import type { GroupId } from "../../domain/group-id.ts";
import { backoffDelayMs } from "../../lib/backoff.ts";
import type { CancelSignal } from "../../lib/cancellation.ts";
import { pause } from "../../lib/pause.ts";
import type { Logger } from "../../lib/logger.ts";
import { ReportedTrouble } from "../../lib/reported-trouble.ts";
import type { Clock } from "../../ports/clock.ts";
import type { EngineLimits } from "../limits.ts";

/** Reports stuck readers to health, by name. */
export interface ReaderTroubles {
  noteReader(
    name: string,
    trouble: { readonly groupId: GroupId; readonly reason: string; readonly error: unknown },
  ): void;
  clearReader(name: string): void;
}

export interface WaitingParts {
  readonly groupId: GroupId;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: EngineLimits;
  readonly troubles: ReaderTroubles;
}

/** The steps that can be stuck, as health names them. */
export const stuck = {
  live: "events",
  retained: "retained events",
  repeated: "events to repeat",
  handedBack: "events that a member did not acknowledge",
};

/** Longest wait between two tries, in milliseconds: short, because a client waits and the store may be back. */
const retryDelayMsMax = 10_000;

/** Waits of the loops of a session or a share: for conditions that others change, and for steps that may fail. */
export class Waiting {
  readonly #parts: WaitingParts;
  readonly #name: string;
  readonly #trouble: ReportedTrouble;
  #sleepers: (() => void)[] = [];

  /** `name` names the session or share in health and in the log. */
  constructor(parts: WaitingParts, name: string) {
    this.#parts = parts;
    this.#name = name;
    this.#trouble = new ReportedTrouble(parts.logger, `events not delivered to ${name}, trying again`);
  }

  /** Whether the last try of a step failed. */
  get isFailing(): boolean {
    return this.#trouble.reason !== undefined;
  }

  /** Wakes every loop that waits. */
  wake(): void {
    const sleepers = this.#sleepers;
    this.#sleepers = [];
    for (const resume of sleepers) resume();
  }

  /**
   * Waits for the next {@link wake}. The loop must check its condition again afterwards, in the turn in which it acts: before
   * that turn, another loop may act.
   */
  async woken(): Promise<void> {
    await new Promise<void>((resolve) => this.#sleepers.push(resolve));
  }

  /**
   * Retries until `step` succeeds; a step that fails must change nothing. Undefined when `signal` aborts. Meanwhile health says that `what` is stuck.
   */
  async untilDone<Result>(
    { what, signal }: { readonly what: string; readonly signal: CancelSignal },
    step: () => Promise<Result>,
  ): Promise<Result | undefined> {
    const { clock, limits } = this.#parts;
    const delays = { delayMsMin: limits.retryDelayMsMin, delayMsMax: retryDelayMsMax, fraction: 0 };
    for (let failures = 1; !signal.aborted; failures += 1) {
      try {
        const result = await step();
        this.recovered(what);
        return result;
      } catch (error) {
        this.#failed(what, error);
        await pause(clock, backoffDelayMs(failures, delays), signal);
      }
    }
    this.recovered(what);
    return undefined;
  }

  /** Call it when `what` is no longer stuck. */
  recovered(what: string): void {
    this.#parts.troubles.clearReader(this.#keyOf(what));
    this.#trouble.done();
  }

  #failed(what: string, error: unknown): void {
    const { groupId, troubles } = this.#parts;
    const reason = error instanceof Error ? error.message : String(error);
    troubles.noteReader(this.#keyOf(what), { groupId, reason, error });
    this.#trouble.failed(error);
  }

  #keyOf(what: string): string {
    return `${this.#name} (${what})`;
  }
}
