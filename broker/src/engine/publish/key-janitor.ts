import type { GroupId } from "../../domain/group-id.ts";
import type { Logger } from "../../lib/logger.ts";
import { ReportedTrouble } from "../../lib/reported-trouble.ts";
import type { Clock } from "../../ports/clock.ts";
import type { PublishKeys } from "../../ports/publish-keys.ts";
import type { EngineLimits } from "../limits.ts";

/** Wait between two rounds in which old keys are removed and the others counted, in milliseconds. */
const roundMs = 60_000;
/** Keys that one statement removes. */
const expiredPerPageMax = 1_000;

export interface KeyJanitorParts {
  readonly groupId: GroupId;
  readonly keys: Pick<PublishKeys, "expirePublishKeys" | "countPublishKeys">;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: Pick<EngineLimits, "publishKeysMax" | "publishKeyKeptMs">;
}

/** Removes the publish keys of a group that are older than they are kept, and knows about how many there are. */
export class KeyJanitor {
  readonly #parts: KeyJanitorParts;
  readonly #trouble: ReportedTrouble;
  #count = 0;
  #running: Promise<void> | undefined;
  #cancel = (): void => {};
  #isStopped = false;

  constructor(parts: KeyJanitorParts) {
    this.#parts = parts;
    this.#trouble = new ReportedTrouble(parts.logger, "old publish keys not removed, trying again");
  }

  /** Whether the group has as many keys as it may have, as far as known. */
  get isFull(): boolean {
    return this.#count >= this.#parts.limits.publishKeysMax;
  }

  /** Counts keys that were recorded, or released if negative, since the last round. */
  added(count: number): void {
    this.#count += count;
  }

  /** The store has started. */
  start(): void {
    this.#running = this.#round();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancel();
    await this.#running;
  }

  async #round(): Promise<void> {
    try {
      await this.#expire();
      this.#trouble.done();
    } catch (error) {
      this.#trouble.failed(error);
    }
    if (this.#isStopped) return;
    this.#cancel = this.#parts.clock.after(roundMs, () => {
      this.#running = this.#round();
    });
  }

  async #expire(): Promise<void> {
    const { keys, groupId, clock, limits } = this.#parts;
    const page = { before: clock.now() - limits.publishKeyKeptMs, atMost: expiredPerPageMax };
    let removed = expiredPerPageMax;
    while (removed === expiredPerPageMax && !this.#isStopped) removed = await keys.expirePublishKeys(groupId, page);
    if (!this.#isStopped) this.#count = await keys.countPublishKeys(groupId);
  }
}
