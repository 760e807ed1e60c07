import { BrokerError } from "@stele/wire";
import type { GroupId } from "../../domain/group-id.ts";
import type { NodeId } from "../../domain/node.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Coordinator, Departure, Hint } from "../../ports/coordinator.ts";
import type { Randomness } from "../../ports/randomness.ts";
import type { EngineLimits } from "../limits.ts";
import { pause } from "../../lib/pause.ts";
import { Deadline } from "../time.ts";
import { LiveMembership } from "./live-membership.ts";
import type { Member, Membership } from "./member.ts";
import { ReportedTrouble } from "../../lib/reported-trouble.ts";
import { Wakeup } from "../../lib/wakeup.ts";
import { untilAborted } from "../../lib/until-aborted.ts";

export interface ClusterMemberOptions {
  readonly coordinator: Coordinator;
  /** Where clients reach this node, host:port. */
  readonly address: string;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly logger: Logger;
  readonly limits: EngineLimits;
  /** Groups whose subscriptions this node can deliver now. */
  readonly readyGroups: () => readonly GroupId[];
  /** Writes what this node has not written under earlier memberships. After the next join, other nodes may take its work over, and the store refuses it. */
  readonly writeRest: () => Promise<void>;
  /** Called in the turn in which a membership ends, unless the node stops: another node may own everything that this one held. */
  readonly onMembershipEnded: () => void;
}

/** Membership durations to wait for a taken address before reporting it. The row of a killed process expires after one such duration. */
const patience = 3;

/** Maximum number of earlier identifiers that a join may replace. After an outage, only the newest joins can still be in progress at the server. */
const formerMax = 64;
/** How long a join waits for the writes of earlier memberships, in milliseconds. */
const writeRestMsMax = 1_000;

/** Keeps this node a member of the cluster: joins, renews, and joins again after its membership has ended. */
export class ClusterMember implements Member {
  readonly #options: ClusterMemberOptions;
  readonly #listeners = new Set<(hint: Hint) => void>();
  readonly #stopping = new AbortController();
  readonly #joining: ReportedTrouble;
  readonly #renewing: ReportedTrouble;
  readonly #listening: ReportedTrouble;
  /**
   * Identifiers of earlier joins, answered or not. A server that hung may execute an earlier join late, and then the address would be taken. So the
   * next join replaces them.
   */
  #former: readonly NodeId[] = [];
  readonly #joined = new Wakeup();
  #current: LiveMembership | undefined;
  #isDraining = false;
  #unlisten: (() => Promise<void>) | undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(options: ClusterMemberOptions) {
    this.#options = options;
    const { logger } = options;
    this.#joining = new ReportedTrouble(logger, "node not joined, trying again");
    this.#renewing = new ReportedTrouble(logger, "membership not renewed, trying again");
    this.#listening = new ReportedTrouble(logger, "hints of other nodes not received, trying again");
  }

  /** Begins to join; {@link membership} waits for it. */
  start(): void {
    void this.#listen();
    this.#running = this.#run();
  }

  /** Asks the coordinator to give this node no further subscriptions. Waits for it like {@link renew}, and never rejects. */
  async drain(): Promise<void> {
    this.#isDraining = true;
    await this.renew();
  }

  /** Ends the membership, so that other nodes take over at once. `signal` ends the wait for a coordinator that does not answer. */
  async stop(signal: AbortSignal): Promise<void> {
    this.#stopping.abort();
    const { coordinator, logger } = this.#options;
    const membership = this.#current;
    membership?.end("this node stops");
    const leaving = [this.#unlisten?.() ?? Promise.resolve(), this.#running];
    if (membership !== undefined) leaving.push(coordinator.leave(membership.nodeId));
    const ended = (await untilAborted(Promise.allSettled(leaving), signal)) ?? [];
    for (const result of ended)
      if (result.status === "rejected") logger.warn("membership not ended", { error: result.reason });
  }

  /** Why this node is not a member; undefined while it is. */
  get failure(): string | undefined {
    if (this.#current?.isLive() === true) return undefined;
    return `this node has not joined the others: ${this.#joining.reason ?? this.#renewing.reason ?? "it is joining"}`;
  }

  isLive(nodeId: NodeId | undefined): boolean {
    return this.#current !== undefined && this.#current.nodeId === nodeId && this.#current.isLive();
  }

  /** The current membership, which may have expired; undefined if there is none. */
  get current(): Membership | undefined {
    return this.#current;
  }

  /** The identifier of the live membership. @throws BrokerError 200207. */
  nodeId(): NodeId {
    if (this.#current?.isLive() === true) return this.#current.nodeId;
    throw new BrokerError("storeUnreachable", { details: this.failure ?? "this node is not a member" });
  }

  async membership(signal: AbortSignal): Promise<Membership | undefined> {
    while (!signal.aborted) {
      if (this.#current?.isLive() === true) return this.#current;
      await this.#joined.wait(signal);
    }
    return undefined;
  }

  onHint(listener: (hint: Hint) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Reports the ready groups to the coordinator, if this node is a member. Resolves when the coordinator has them or the call failed; never rejects. */
  async renew(): Promise<void> {
    if (this.#current?.isLive() === true) await this.#renew(this.#current);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      const membership = await this.#join();
      if (membership !== undefined) await this.#keep(membership);
    }
  }

  /** Undefined if the node stops first. */
  async #join(): Promise<LiveMembership | undefined> {
    const { clock, limits } = this.#options;
    const { signal } = this.#stopping;
    const since = clock.monotonic();
    for (;;) {
      await this.#writeRest();
      if (signal.aborted) return undefined;
      const membership = await this.#tryToJoin(since);
      if (membership?.isLive() === true) return membership;
      await pause(clock, limits.membershipMs / 6, signal);
    }
  }

  /** Resolves even if the write fails or takes long: a lock on one row must not keep this node out. */
  async #writeRest(): Promise<void> {
    const { clock, writeRest } = this.#options;
    const written = writeRest().catch(() => undefined);
    await Promise.race([written, pause(clock, writeRestMsMax, this.#stopping.signal)]);
  }

  /** Uses a new identifier each time, since an earlier join may be answered late. */
  async #tryToJoin(since: number): Promise<LiveMembership | undefined> {
    const { coordinator, address, clock, randomness, limits } = this.#options;
    const { membershipMs } = limits;
    const nodeId = randomness.uuid() as NodeId; // A NodeId is the UUID of a join.
    const sentAt = clock.monotonic();
    const replaces = this.#former;
    this.#former = [...replaces, nodeId].slice(-formerMax);
    try {
      using deadline = new Deadline(clock, membershipMs);
      const answer = coordinator.join({ id: nodeId, address, replaces }, membershipMs);
      const outcome = await untilAborted(answer, deadline.signal);
      const membership = new LiveMembership(nodeId, { clock, membershipMs, sentAt });
      if (outcome === "joined" && this.#admit(membership)) return membership;
      // No node uses the member that this join created. The next join replaces it, but there may be none.
      if (outcome === "joined") await untilAborted(coordinator.leave(nodeId), deadline.signal);
      if (outcome === "taken") this.#onTaken(since);
      else throw new Error("the coordinator does not answer in time");
    } catch (error) {
      if (!this.#stopping.signal.aborted) this.#joining.failed(error);
    }
    return undefined;
  }

  #onTaken(since: number): void {
    const { address, clock, limits, logger } = this.#options;
    if (clock.monotonic() - since > patience * limits.membershipMs)
      this.#joining.failed(
        new Error(
          `another node that is up has the address ${address}: give each node its own advertised address, ` +
            "or wait ten minutes if the clock of the database was set back",
        ),
      );
    else logger.debug("address not free yet", { address });
  }

  /** Returns false if it is too late: the membership expired before the answer came, or the node stops. */
  #admit(membership: LiveMembership): boolean {
    const { logger, address } = this.#options;
    if (this.#stopping.signal.aborted || !membership.isLive()) return false;
    this.#joining.done();
    this.#renewing.done();
    this.#current = membership;
    membership.ended.addEventListener("abort", () => this.#onEnded(membership), { once: true });
    logger.info("node joined", { nodeId: membership.nodeId, address });
    this.#joined.wake();
    this.#notify({ kind: "nodes" });
    return true;
  }

  #onEnded(membership: LiveMembership): void {
    if (this.#current !== membership) return;
    this.#current = undefined;
    if (this.#stopping.signal.aborted) return;
    this.#options.logger.warn("membership ended, joining again", {
      nodeId: membership.nodeId,
      reason: membership.ended.reason,
    });
    this.#options.onMembershipEnded();
  }

  /** Sends a renewal every third of `membershipMs`, even if the last one has no answer yet, until the membership has ended. */
  async #keep(membership: LiveMembership): Promise<void> {
    const { clock, limits } = this.#options;
    while (membership.isLive()) {
      void this.#renewUntilAnswered(membership);
      await pause(clock, limits.membershipMs / 3, membership.ended);
    }
  }

  /** Retries soon, so that a short outage of the coordinator does not cost the membership. The end of the membership ends the retries. */
  async #renewUntilAnswered(membership: LiveMembership): Promise<void> {
    const { clock, limits } = this.#options;
    while (membership.isLive() && !(await this.#renew(membership)))
      await pause(clock, limits.membershipMs / 12, membership.ended);
  }

  /** Sends one renewal; false if it failed. Never rejects. */
  async #renew(membership: LiveMembership): Promise<boolean> {
    const { coordinator, clock, limits, readyGroups } = this.#options;
    const sentAt = clock.monotonic();
    try {
      const groups = this.#isDraining ? [] : readyGroups();
      const isMember = await coordinator.renew(membership.nodeId, { lastsMs: limits.membershipMs, groups });
      this.#renewing.done();
      if (isMember) membership.renewed(sentAt);
      else membership.end("the coordinator does not know this member");
      return true;
    } catch (error) {
      if (membership.isLive()) this.#renewing.failed(error);
      return false;
    }
  }

  #hear(hint: Hint): void {
    if (hint.kind === "gone") this.#report(hint);
    this.#notify(hint);
  }

  #notify(hint: Hint): void {
    for (const listener of this.#listeners) listener(hint);
  }

  /** Logs departures of other nodes, not those of earlier memberships of this one. */
  #report({ how, nodeId, address, subscriptions, groups }: Departure): void {
    const { address: own, logger } = this.#options;
    if (address === own) return;
    const fields = { nodeId, address, subscriptions, groups };
    if (how === "left") logger.info("another node left", fields);
    else logger.warn("another node expired", fields);
  }

  async #listen(): Promise<void> {
    const { coordinator, clock, limits } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted && this.#unlisten === undefined) {
      try {
        const unlisten = await coordinator.listen((hint) => this.#hear(hint));
        this.#listening.done();
        this.#unlisten = unlisten;
        if (signal.aborted) await unlisten();
      } catch (error) {
        this.#listening.failed(error);
        await pause(clock, limits.membershipMs / 6, signal);
      }
    }
  }
}
