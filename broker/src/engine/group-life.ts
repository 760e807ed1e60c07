import { BrokerError, errorCatalogue } from "@stele/wire";
import type { GroupId } from "../domain/group-id.ts";
import { backoffDelayMs } from "../lib/backoff.ts";
import { joinTexts } from "../lib/join-texts.ts";
import type { Logger } from "../lib/logger.ts";
import type { Clock } from "../ports/clock.ts";
import type { Randomness } from "../ports/randomness.ts";
import type { GroupHealth } from "./broker.ts";
import type { Admission } from "./follow/admission.ts";
import type { Role } from "./follow/role.ts";
import type { ChainDamage } from "./integrity/chain-damage.ts";
import type { Scrubber, ScrubReport } from "./integrity/scrubber.ts";
import type { Troubles } from "./integrity/troubles.ts";
import type { Retention } from "./retention/retention.ts";
import { catchingUp, chainNotAnswered, type Group } from "./group.ts";
import type { EngineLimits } from "./limits.ts";
import { pause } from "../lib/pause.ts";
import { untilAborted } from "../lib/until-aborted.ts";

/** Troubles of the process itself, which health reports for every group. */
export interface ProcessTrouble {
  /** Why the node is not ready. */
  readonly reason: string | undefined;
  readonly warning: string | undefined;
}

export interface GroupLifeOptions {
  readonly group: Group;
  readonly role: Role;
  readonly troubles: Troubles;
  readonly chainDamage: ChainDamage;
  readonly scrubber: Scrubber;
  readonly retention: Retention;
  readonly processTrouble?: (() => ProcessTrouble) | undefined;
  /** Undefined if the broker is a single node. */
  readonly admission?: Admission | undefined;
  /** Counts the active subscriptions of the group that this node delivers. */
  readonly countSubscriptions: () => number;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly logger: Logger;
  readonly limits: EngineLimits;
  /** Called when the index has caught up and the group accepts calls. */
  readonly onReady: (groupId: GroupId) => void;
}

/** Starts one group, retrying while its chain does not answer, and reports its health. */
export class GroupLife {
  readonly #parts: GroupLifeOptions;
  readonly #stopping = new AbortController();
  /** Scrubbing and retention. */
  #upkeep: Promise<unknown> | undefined;
  #isConnected = false;
  /** Why the last start failed. The same reason is logged once. */
  #lastReason: string | undefined;

  constructor(parts: GroupLifeOptions) {
    this.#parts = parts;
  }

  get groupId(): GroupId {
    return this.#parts.group.id;
  }

  /** Whether this node writes the group's index. */
  get isFollowing(): boolean {
    return this.#parts.role.epoch !== undefined;
  }

  /** Whether the group's chain is in this process. If its start fails, a retry would not help. */
  get isOwn(): boolean {
    return this.#parts.group.ledger.isFinal;
  }

  /**
   * Connects, lets the index catch up, and opens the group for calls; tries again until it succeeds or `signal` aborts.
   * @throws the first failure if the chain is in this process.
   */
  async start(signal: AbortSignal): Promise<void> {
    for (let failures = 1; !signal.aborted; failures += 1) {
      try {
        return await this.#bringUp(signal);
      } catch (error) {
        if (this.isOwn) throw error;
        await this.#waitAfter(error, { failures, signal });
      }
    }
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#upkeep;
    await this.#parts.role.stop();
  }

  /** Scrubs the group once, without pauses. Reports each part as it ends. */
  scrub(report: (ended: ScrubReport) => void): Promise<void> {
    return this.#parts.scrubber.runOnce((ended) => report({ ...ended, behind: this.#closedBecause() }));
  }

  health(): GroupHealth {
    const { group, chainDamage, retention, countSubscriptions } = this.#parts;
    const { indexHealth } = group;
    const ofProcess = this.#parts.processTrouble?.();
    const ofDelivery = (): string | undefined => this.#parts.troubles.reasonOf(group.id);
    const ofGroup = this.#closedBecause() ?? this.#outage() ?? indexHealth.failure ?? chainDamage.failure;
    const reason = ofGroup ?? ofDelivery() ?? ofProcess?.reason;
    const { headBlock, facts, warning, transactionFailure } = group.ledger.view();
    const ofReaders = this.#parts.troubles.warningOf(group.id);
    // Only the node that writes the index scrubs it and drops old copies. Another node would not notice that the cause of such a warning has ended.
    const ofUpkeep = this.isFollowing ? [group.indexDamage.warning, retention.warning] : [];
    const warnings = [
      transactionFailure,
      warning,
      indexHealth.warning,
      chainDamage.warning,
      ...ofUpkeep,
      ofReaders,
      ofProcess?.warning,
    ];
    return {
      groupId: group.id,
      ready: reason === undefined,
      reason,
      warning: joinTexts(warnings),
      ...(transactionFailure !== undefined && { transactionFailure }),
      role: this.isFollowing ? "follows" : "watches",
      subscriptions: countSubscriptions(),
      indexedBlock: group.progress.blockNumber,
      headBlock,
      chain: facts,
    };
  }

  async #bringUp(signal: AbortSignal): Promise<void> {
    const { group, role, onReady } = this.#parts;
    if (!this.#isConnected) await this.#connect(signal);
    if (signal.aborted) return;
    this.#isConnected = true;
    group.close(catchingUp);
    await role.start(signal);
    if (signal.aborted) return;
    group.open();
    onReady(group.id);
    const { scrubber, retention } = this.#parts;
    this.#upkeep ??= Promise.all([scrubber.run(this.#stopping.signal), retention.run(this.#stopping.signal)]);
    this.#parts.logger.info("group ready", group.ledger.view().facts);
  }

  async #connect(signal: AbortSignal): Promise<void> {
    const { group, admission } = this.#parts;
    if (admission !== undefined && this.#lastReason === undefined)
      group.close("this node has not joined the others yet");
    const options = await admission?.toLedger(signal);
    if (signal.aborted) return;
    if (this.#lastReason === undefined) group.close(chainNotAnswered);
    try {
      await untilAborted(group.ledger.start(options), signal);
    } catch (error) {
      await admission?.giveWay();
      throw error;
    }
  }

  async #waitAfter(error: unknown, { failures, signal }: { failures: number; signal: AbortSignal }): Promise<void> {
    const { group, clock, limits, randomness, logger } = this.#parts;
    const reason = reasonOf(error);
    group.close(reason);
    if (reason !== this.#lastReason) logger.warn("group not started, trying again", { reason });
    this.#lastReason = reason;
    logger.debug("group not started", { failures, error });
    const delayMs = backoffDelayMs(failures, {
      delayMsMin: limits.startDelayMsMin,
      delayMsMax: limits.startDelayMsMax,
      fraction: randomness.fraction(),
    });
    await pause(clock, delayMs, signal);
  }

  /** Why the group is closed. While the index catches up, its failure or an outage of the chain says more. */
  #closedBecause(): string | undefined {
    const { closedBecause, indexHealth } = this.#parts.group;
    return closedBecause === catchingUp ? (indexHealth.failure ?? this.#outage() ?? closedBecause) : closedBecause;
  }

  /** An outage shorter than the tolerance is not reported. */
  #outage(): string | undefined {
    const { group, clock, limits } = this.#parts;
    const { outage } = group.ledger.view();
    if (outage === undefined || clock.monotonic() - outage.since < limits.outageToleranceMs) return undefined;
    return outage.reason;
  }
}

const unreachable = `${errorCatalogue.chainUnreachable.message}: `;

/** The reason without the error's catalogue message, which callers get as a prefix anyway. */
function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const reason = message.startsWith(unreachable) ? message.slice(unreachable.length) : message;
  return error instanceof BrokerError ? [reason, ...error.hints].join(". ") : reason;
}
