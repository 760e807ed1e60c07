import { BrokerError } from "@stele/wire";
import type { GroupId } from "../../domain/group-id.ts";
import type { Logger } from "../../lib/logger.ts";
import { ReportedTrouble } from "../../lib/reported-trouble.ts";
import type { Clock } from "../../ports/clock.ts";
import type { PublishKeys } from "../../ports/publish-keys.ts";
import type { EngineLimits } from "../limits.ts";

/** Wait between two rounds, each of which removes old keys and counts the others, in milliseconds. */
const roundMs = 60_000;
/** Maximum number of keys that one statement removes. */
const expiredPerPageMax = 1_000;

/** How much longer than their lifetime keys are kept, in milliseconds: the stored session time may be a round old, and this node's copy of it another round. */
const timeUnsureMs = 2 * roundMs;

export interface KeyJanitorOptions {
  readonly groupId: GroupId;
  readonly keys: Pick<PublishKeys, "expirePublishKeys" | "countPublishKeys" | "dropPublishKeys">;
  readonly clock: Clock;
  /** The group's session time. The time of day can be set forward, which would expire keys early. */
  readonly times: { advance(groupId: GroupId): Promise<void>; find(groupId: GroupId): Promise<number> };
  readonly logger: Logger;
  readonly limits: Pick<
    EngineLimits,
    "publishKeysMax" | "publishKeysPerCallerMax" | "publishKeysPerSessionMax" | "publishKeyKeptMs"
  >;
}

/** A count of the store leaves out scopes with fewer keys, or below the lowest limit, so that many small scopes take no memory. */
const scopeCountMin = 16;

/** How many more keys a group keeps for wills, as a fraction of its limit: callers may have used up the rest, and nobody repeats a will that was refused. */
const willKeysFraction = 0.1;

/** The owner of publish keys: a session, its will, or a caller without a session. */
export interface KeyScope {
  readonly scope: string;
  readonly isOfSession: boolean;
  readonly isOfWill?: boolean;
}

/** Removes the expired publish keys of a group, and estimates how many there are, in all and per scope. */
export class KeyJanitor {
  readonly #options: KeyJanitorOptions;
  readonly #trouble: ReportedTrouble;
  #count = 0;
  #time: number | undefined;
  readonly #byScope = new Map<string, number>();
  #running: Promise<void> | undefined;
  #cancel = (): void => {};
  #isStopped = false;

  constructor(options: KeyJanitorOptions) {
    this.#options = options;
    this.#trouble = new ReportedTrouble(options.logger, "old publish keys not removed, trying again");
  }

  /** The error for a new key if its scope or the group has too many keys, by the estimate; undefined if the key may be recorded. */
  refusalOf({ scope, isOfSession, isOfWill = false }: KeyScope): BrokerError | undefined {
    const { publishKeysMax, publishKeysPerCallerMax, publishKeysPerSessionMax } = this.#options.limits;
    const scopeMax = isOfSession ? publishKeysPerSessionMax : publishKeysPerCallerMax;
    if ((this.#byScope.get(scope) ?? 0) >= scopeMax) {
      const whose = isOfSession ? "this session" : "this caller";
      return new BrokerError("overQuota", { details: `${scopeMax} publish keys of ${whose} are kept` });
    }
    if (this.#count < publishKeysMax * (isOfWill ? 1 + willKeysFraction : 1)) return undefined;
    return new BrokerError("overQuota", { details: "too many publish keys are kept" });
  }

  /** Adds `count` keys of a scope to the estimate; a negative count is of released keys. */
  added(scope: string, count: number): void {
    this.#count += count;
    const left = (this.#byScope.get(scope) ?? 0) + count;
    if (left > 0) this.#byScope.set(scope, left);
    else this.#byScope.delete(scope);
  }

  /** Whether the group has keys, by the estimate. */
  get hasKeys(): boolean {
    return this.#count > 0;
  }

  /** The group's session time, as the newest successful round read it; before that, as the first call read it. */
  async readTime(): Promise<number> {
    this.#time ??= await this.#options.times.find(this.#options.groupId);
    return this.#time;
  }

  /** Removes the keys of a session that has ended. Never rejects: keys that remain expire later. */
  async drop(scope: string): Promise<void> {
    const { keys, groupId, logger } = this.#options;
    this.added(scope, -(this.#byScope.get(scope) ?? 0));
    try {
      await keys.dropPublishKeys(groupId, scope);
    } catch (error) {
      logger.debug("publish keys of a session not removed", { error });
    }
  }

  /** Starts the rounds. The store must have started. */
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
    this.#cancel = this.#options.clock.after(roundMs, () => {
      this.#running = this.#round();
    });
  }

  async #expire(): Promise<void> {
    const { keys, groupId, times, limits, clock } = this.#options;
    if (this.#count > 0) await times.advance(groupId);
    const time = await times.find(groupId);
    this.#time = time;
    const page = { before: time - limits.publishKeyKeptMs - timeUnsureMs, atMost: expiredPerPageMax };
    let removed = expiredPerPageMax;
    while (removed === expiredPerPageMax && !this.#isStopped) {
      removed = await keys.expirePublishKeys(groupId, page);
      await new Promise<void>((resolve) => clock.soon(resolve)); // A store in memory answers within the turn.
    }
    if (this.#isStopped) return;
    const { publishKeysPerCallerMax, publishKeysPerSessionMax } = limits;
    const scopeMin = Math.min(scopeCountMin, publishKeysPerCallerMax, publishKeysPerSessionMax);
    const { total, byScope } = await keys.countPublishKeys(groupId, scopeMin);
    this.#count = total;
    this.#byScope.clear();
    for (const [scope, count] of byScope) this.#byScope.set(scope, count);
  }
}
