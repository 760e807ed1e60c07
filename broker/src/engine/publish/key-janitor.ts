import { BrokerError } from "@stele/wire";
import type { GroupId } from "../../domain/group-id.ts";
import type { Logger } from "../../lib/logger.ts";
import { ReportedTrouble } from "../../lib/reported-trouble.ts";
import type { Clock } from "../../ports/clock.ts";
import { type PublishKeys, sharedAccountOf } from "../../ports/publish-keys.ts";
import type { EngineLimits } from "../limits.ts";

/** Wait between two rounds, in milliseconds. A round removes the expired keys and counts the others. */
const roundMs = 60_000;
/** Maximum number of keys that one statement removes. */
const expiredPerPageMax = 1_000;

/**
 * Extra time for which keys are kept, in milliseconds, so that none expires early. The session time that a key gets may be two rounds late: the stored time is
 * up to a round late, and this node's copy of it up to another round.
 */
const extraKeptMs = 2 * roundMs;

export interface KeyJanitorOptions {
  readonly groupId: GroupId;
  readonly keys: Pick<PublishKeys, "expirePublishKeys" | "countPublishKeys" | "dropPublishKeys">;
  readonly clock: Clock;
  /** The session time of groups, by which keys expire. By the time of day, keys would expire early if somebody set the clock forward. */
  readonly times: { advance(groupId: GroupId): Promise<void>; find(groupId: GroupId): Promise<number> };
  readonly logger: Logger;
  readonly limits: Pick<
    EngineLimits,
    "publishKeysMax" | "publishKeysPerCallerMax" | "publishKeysPerSessionMax" | "publishKeyKeptMs"
  >;
}

/** The store reports only scopes and tenants with at least this many keys, or with fewer if a limit is lower. So many small ones take no memory. */
const accountCountMin = 16;

/** Extra keys for wills, as a fraction of the limits of the group and of all sessions. Callers may have used up a limit, and nobody repeats a refused will. */
const willKeysFraction = 0.1;

/** The owner of publish keys: a session, its will, or a caller without a session. */
export interface KeyScope {
  readonly scope: string;
  readonly isOfSession: boolean;
  readonly isOfWill?: boolean;
}

/** Removes the expired publish keys of a group, and estimates how many there are: in all, of each scope, of each tenant, and of all sessions. */
export class KeyJanitor {
  readonly #options: KeyJanitorOptions;
  readonly #trouble: ReportedTrouble;
  #count = 0;
  #time: number | undefined;
  #byAccount = new Map<string, number>();
  #running: Promise<void> | undefined;
  #cancel = (): void => {};
  #isStopped = false;

  constructor(options: KeyJanitorOptions) {
    this.#options = options;
    this.#trouble = new ReportedTrouble(options.logger, "expired publish keys not removed, trying again");
  }

  /** The error for a new key if its scope, its tenant, all sessions or the group have too many keys, by the estimate; undefined if the key may be recorded. */
  refusalOf({ scope, isOfSession, isOfWill = false }: KeyScope): BrokerError | undefined {
    const { publishKeysMax, publishKeysPerCallerMax, publishKeysPerSessionMax } = this.#options.limits;
    const ownMax = isOfSession ? publishKeysPerSessionMax : publishKeysPerCallerMax;
    if (this.#countOf(scope) >= ownMax) return tooMany(isOfSession ? "this session" : "this caller", ownMax);
    const willFactor = isOfWill ? 1 + willKeysFraction : 1;
    if (this.#countOf(sharedAccountOf(scope)) >= publishKeysPerCallerMax * willFactor)
      return tooMany(isOfSession ? "all sessions together" : "the tenant of this caller", publishKeysPerCallerMax);
    if (this.#count < publishKeysMax * willFactor) return undefined;
    return new BrokerError("overQuota", { details: "the group has too many publish keys" });
  }

  /** Adds `count` keys of a scope to the estimate, or removes them if `count` is negative. */
  adjustCount(scope: string, count: number): void {
    this.#count += count;
    for (const account of [scope, sharedAccountOf(scope)]) {
      if (account === undefined) continue;
      const left = this.#countOf(account) + count;
      if (left > 0) this.#byAccount.set(account, left);
      else this.#byAccount.delete(account);
    }
  }

  /** Whether the group has keys, by the estimate. */
  get hasKeys(): boolean {
    return this.#count > 0;
  }

  /** The group's session time, as the last successful round read it. If there was none, the first call reads it. */
  async readTime(): Promise<number> {
    this.#time ??= await this.#options.times.find(this.#options.groupId);
    return this.#time;
  }

  /** Removes the keys of a session that has ended. Never rejects: if the store fails, the keys expire later. */
  async drop(scope: string): Promise<void> {
    const { keys, groupId, logger } = this.#options;
    this.adjustCount(scope, -this.#countOf(scope));
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
    const page = { before: time - limits.publishKeyKeptMs - extraKeptMs, atMost: expiredPerPageMax };
    let removed = expiredPerPageMax;
    while (removed === expiredPerPageMax && !this.#isStopped) {
      removed = await keys.expirePublishKeys(groupId, page);
      await new Promise<void>((resolve) => clock.soon(resolve)); // Lets other work run: a store in memory never waits.
    }
    if (this.#isStopped) return;
    const { publishKeysPerCallerMax, publishKeysPerSessionMax } = limits;
    const countMin = Math.min(accountCountMin, publishKeysPerCallerMax, publishKeysPerSessionMax);
    const { total, byAccount } = await keys.countPublishKeys(groupId, countMin);
    this.#byAccount = new Map(byAccount);
    this.#count = total;
  }

  #countOf(account: string | undefined): number {
    return (account !== undefined && this.#byAccount.get(account)) || 0;
  }
}

function tooMany(whose: string, max: number): BrokerError {
  return new BrokerError("overQuota", { details: `at most ${max} publish keys for ${whose}` });
}
