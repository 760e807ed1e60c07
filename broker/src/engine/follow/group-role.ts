import type { Coordinator, GroupLease, Hint } from "../../ports/coordinator.ts";
import type { Member, Membership } from "../cluster/member.ts";
import { whileMember } from "../cluster/while-member.ts";
import { pause } from "../../lib/pause.ts";
import { ReportedTrouble } from "../../lib/reported-trouble.ts";
import { untilAborted } from "../../lib/until-aborted.ts";
import { Wakeup } from "../../lib/wakeup.ts";
import { Deadline } from "../time.ts";
import type { Admission } from "./admission.ts";
import { type Role, untilCaughtUp } from "./role.ts";
import { StallDetector } from "./stall-detector.ts";
import { retryDelayMs, Term, type TermOptions } from "./term.ts";

/** Wait between two attempts to take a group's lease when no hint comes, in milliseconds. */
const leaseTryMs = 1_000;

export interface GroupRoleOptions extends TermOptions {
  readonly coordinator: Coordinator;
  readonly member: Member;
  readonly admission: Admission;
}

/**
 * The role of a node that shares the store: it follows the chain while it has the group's lease, and otherwise watches the index that another
 * node writes.
 */
export class GroupRole implements Role {
  readonly #options: GroupRoleOptions;
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;
  #membership: Membership | undefined;
  readonly #stallDetector: StallDetector;
  #term: (HeldLease & { readonly term: Term }) | undefined;
  /** A lease that this node still has to release. */
  #owed: HeldLease | undefined;
  readonly #releaseTrouble: ReportedTrouble;
  /** When to try for the lease next; a `nodes` hint resets it. In milliseconds of the monotonic clock. */
  #tryAt = Number.NEGATIVE_INFINITY;
  /** This node does not try for the lease before this time, even after a hint. In milliseconds of the monotonic clock. */
  #restUntil = Number.NEGATIVE_INFINITY;
  readonly #due = new Wakeup();
  #isDue = false;

  constructor(options: GroupRoleOptions) {
    this.#options = options;
    this.#stallDetector = new StallDetector(options);
    this.#releaseTrouble = new ReportedTrouble(options.logger, "group lease not released, trying again");
  }

  /** Also checks the membership: if the process stood still, another node may have taken the lease although the term has not ended here. */
  get epoch(): number | undefined {
    return this.#term?.membership.isLive() === true ? this.#term.lease.epoch : undefined;
  }

  async start(signal: AbortSignal): Promise<void> {
    this.#running ??= this.#run();
    await untilCaughtUp(this.#options, signal);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#look();
    await this.#running;
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    const unlisten = this.#options.member.onHint((hint) => this.#onHint(hint));
    const others = [this.#joinInTurn(signal), this.#stallDetector.watch(() => this.#isWatching, signal)];
    for (let failures = 0; !signal.aborted; ) {
      await this.#release();
      const held = await this.#takeLease();
      if (held !== undefined) await this.#hold(held);
      failures = (await this.#watch()) ? 0 : failures + 1;
      await this.#rest(failures);
    }
    unlisten();
    await Promise.all(others);
  }

  /** For each membership in turn: waits until this node has reserved its signer, and then until the membership ends. */
  async #joinInTurn(signal: AbortSignal): Promise<void> {
    const { member, admission } = this.#options;
    await whileMember(member, signal, async (membership, until) => {
      await admission.keepSigner(membership, until);
      this.#membership = membership;
      this.#tryAt = Number.NEGATIVE_INFINITY;
      this.#look();
      await untilAborted(new Promise(() => {}), until);
      this.#membership = undefined;
    });
  }

  get #isWatching(): boolean {
    return this.#term === undefined && this.#membership?.isLive() === true && this.#options.progress.generation !== -1;
  }

  #onHint(hint: Hint): void {
    if (hint.kind === "nodes") this.#tryAt = Number.NEGATIVE_INFINITY;
    const isOwn = "groupId" in hint && hint.groupId === this.#options.ledger.groupId;
    if (hint.kind === "nodes" || (hint.kind === "index" && isOwn)) this.#look();
    if (hint.kind === "ahead" && isOwn) this.#term?.term.hearOf(hint.blockNumber);
  }

  /** Begins the next round of the loop at once. A round in progress may have missed the change. */
  #look(): void {
    this.#isDue = true;
    this.#due.wake();
  }

  /** Takes the lease if it is time to try and no other node has it. A node whose chain does not answer tries less often, so that others try first. */
  async #takeLease(): Promise<HeldLease | undefined> {
    const { coordinator, ledger, clock, logger, limits } = this.#options;
    const membership = this.#membership;
    const now = clock.monotonic();
    if (membership?.isLive() !== true || now < Math.max(this.#tryAt, this.#restUntil)) return undefined;
    this.#tryAt = now + leaseTryMs;
    if (ledger.view().outage !== undefined) this.#restUntil = now + limits.outageToleranceMs;
    try {
      const lease = await coordinator.takeLease(ledger.groupId, membership.nodeId);
      this.#owed = undefined; // An unreleased lease of this node is settled now: the node has got the same lease again, or has lost it.
      return lease && { lease, membership };
    } catch (error) {
      logger.debug("group lease not taken", { error });
      return undefined;
    }
  }

  async #hold(held: HeldLease): Promise<void> {
    const { lease, membership } = held;
    const { logger, clock, limits } = this.#options;
    logger.info("following began", { epoch: lease.epoch });
    const until = AbortSignal.any([this.#stopping.signal, membership.ended]);
    const term = new Term(this.#options, lease);
    this.#term = { ...held, term };
    const outcome = await term.serve(until);
    this.#term = undefined;
    logger.info("following ended", { epoch: lease.epoch, outcome });
    if (outcome === "away") this.#restUntil = clock.monotonic() + limits.outageToleranceMs;
    if (outcome !== "lost") this.#owed = held;
    await this.#release();
  }

  /** Releases the owed lease. Each round retries it: no other node can follow until the lease is free. An ended membership has no lease. */
  async #release(): Promise<void> {
    if (this.#owed === undefined) return;
    const { lease, membership } = this.#owed;
    try {
      if (membership.isLive()) await this.#options.coordinator.releaseLease(lease);
      this.#owed = undefined;
      this.#releaseTrouble.done();
    } catch (error) {
      this.#releaseTrouble.failed(error);
    }
  }

  /** Catches up once with the index that other nodes write; returns false if that failed. */
  async #watch(): Promise<boolean> {
    const { watcher, health, logger } = this.#options;
    this.#isDue = false;
    try {
      await watcher.catchUp(this.#stopping.signal);
      const { failure } = this.#stallDetector;
      if (failure === undefined) health.follows();
      else health.failed(new Error(failure));
      return true;
    } catch (error) {
      if (health.failure === undefined) logger.warn("index not read, trying again", { error });
      health.failed(error);
      return false;
    }
  }

  /** Waits until the next round. After a failure, hints do not end the wait. */
  async #rest(failures: number): Promise<void> {
    const { clock, limits } = this.#options;
    const { signal } = this.#stopping;
    if (failures > 0) await pause(clock, retryDelayMs(failures, this.#options), signal);
    else if (!this.#isDue && !signal.aborted) {
      using deadline = new Deadline(clock, limits.watchPollMs);
      await this.#due.wait(deadline.signal);
    }
  }
}

/** A lease, with the membership under which it was taken. */
interface HeldLease {
  readonly lease: GroupLease;
  readonly membership: Membership;
}
