import { BrokerError } from "@stele/wire";
import { DeliveryWindow } from "../../domain/delivery-window.ts";
import type { GroupId } from "../../domain/group-id.ts";
import type { NodeId } from "../../domain/node.ts";
import type { SubscriptionId } from "../../domain/subscription.ts";
import { KeyedMutex } from "../../lib/keyed-mutex.ts";
import { pause } from "../../lib/pause.ts";
import type { SessionClaim, SessionClaimed, SessionId } from "../../ports/session-store.ts";
import type { Caller, Principal } from "../access/caller.ts";
import type { Attachment, AttachOrder, WillOrder } from "../broker.ts";
import type { Readers } from "../dispatch/readers.ts";
import type { Group } from "../group.ts";
import { indexedUpTo } from "../index-progress.ts";
import type { SessionStanding } from "../session-standing.ts";
import { type Connected, type Leave, toStanding, willBytes } from "./connected.ts";
import { FilterRemoval, nameOf } from "./filter-removal.ts";
import type { Peer } from "./peer.ts";
import { Session } from "./session.ts";
import type { SessionsParts } from "./session-parts.ts";
import { encodePrincipal, encodeWill, storedOf, takenUp } from "./session-codec.ts";
import { SessionFilters } from "./session-filters.ts";
import { SessionSweeper } from "./session-sweeper.ts";
import { Shares } from "./shares.ts";
import { SessionTimes } from "./session-times.ts";
import { SessionWriter, type Written } from "./session-writer.ts";
import { Unreleased } from "./unreleased.ts";

/** Times that a claim is tried while the index rolls back. */
const claimsMax = 10;

/** First epochs are random below this, so that a stale node cannot match a recreated session. */
const firstEpochMax = 2 ** 40;

/** The sessions whose connections this node has. Those that outlast their connections are in the store, and only there while they have none. */
export class Sessions implements Readers {
  readonly #parts: SessionsParts;
  readonly #connected = new Map<string, Connected>();
  readonly #turns = new KeyedMutex<string>();
  readonly #stopping = new AbortController();
  readonly #leaving = new Set<Promise<void>>();
  readonly #filters: SessionFilters;
  readonly #removal: FilterRemoval;
  readonly #times: SessionTimes;
  readonly #sweeper: SessionSweeper;
  readonly writer: SessionWriter;
  /** Sessions without connection that are members of shares, so that these wait for them. */
  readonly #dormant = new Map<SessionId, Session>();
  readonly #shares: ReadonlyMap<GroupId, Shares>;
  readonly #unreleased = new Unreleased();
  /** Groups whose index rolls back. */
  readonly #stopped = new Set<GroupId>();
  #willBytes = 0;

  constructor(parts: SessionsParts) {
    this.#parts = parts;
    this.writer = new SessionWriter({ ...parts, onRefused: (sessions) => this.#onRefused(sessions) });
    this.#filters = new SessionFilters({ ...parts, onRefused: (session) => this.#readAgain(session) });
    this.#times = new SessionTimes(parts);
    const onChanged = (session: Session): Promise<void> => this.#readUntilDone(session);
    this.#removal = new FilterRemoval({ ...parts, connected: this.#connected, turns: this.#turns, onChanged });
    const onEnded = (id: SessionId): void => this.#wakeUp(id);
    this.#sweeper = new SessionSweeper({ ...parts, times: this.#times, signal: this.#stopping.signal, onEnded });
    this.#shares = new Map(parts.groups.all.map(({ id }) => [id, new Shares(id, parts.toSessionParts)]));
  }

  get size(): number {
    return this.#connected.size;
  }

  /** What the sessions whose connections this node has are now. */
  listConnected(): readonly SessionStanding[] {
    return [...this.#connected.values()].map(toStanding);
  }

  /** Removes a filter of any session, for somebody else than its client. Answers whether there was such a filter. */
  removeFilter(id: SubscriptionId): Promise<boolean> {
    return this.#removal.run(id);
  }

  /** A group has come up: its sessions without connection are seen to. */
  resume(groupId: GroupId): void {
    this.#sweeper.begin(groupId);
  }

  /** Takes over from the connection that has the session. @throws BrokerError 200205, 200207, 200211, 200300. */
  async attach(caller: Caller, order: AttachOrder, peer: Peer): Promise<Attachment> {
    const group = this.#parts.groups.get(order.groupId);
    const name = nameOf({ ...order, groupId: group.id });
    await this.#sweeper.ready(group.id);
    return this.#turns.run(name, async () => {
      this.#checkRoom(name, order.will);
      await this.#endLocal(name);
      return group.changes.shared(() => this.#attach({ name, group, caller }, order, peer));
    });
  }

  async stop(groupId: GroupId): Promise<void> {
    this.#stopped.add(groupId);
    const sessions = this.#of(groupId);
    await Promise.all([this.#sharesOf(groupId).stop(), ...sessions.map((session) => session.stop())]);
  }

  restart(groupId: GroupId): void {
    this.#stopped.delete(groupId);
    for (const session of this.#of(groupId)) {
      if (this.#parts.isShared && session.isStored) this.#readSoon(session);
      else session.restart();
    }
    this.#sharesOf(groupId).restart();
  }

  /** Another than its owner has changed a session. */
  onHint(id: SessionId): void {
    const known = this.#find(id);
    if (known?.session.isStored === true) this.#readSoon(known.session);
  }

  /** Every session of this node may be another's by now: ends the connections. */
  endAll(why: "stopping" | "stale"): void {
    for (const known of this.#connected.values()) {
      known.peer.ended(why);
      this.#release(known);
    }
  }

  /** Ends every connection, and answers when that is written, or cannot be in time. */
  async stopAll(signal: AbortSignal): Promise<void> {
    for (const shares of this.#shares.values()) shares.close();
    for (const { peer } of this.#connected.values()) peer.ended("stopping");
    const left = Promise.allSettled(this.#leaving);
    await Promise.race([left, new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }))]);
    this.#stopping.abort();
    await this.#sweeper.stop();
  }

  async #attach(
    { name, group, caller }: { readonly name: string; readonly group: Group; readonly caller: Caller },
    order: AttachOrder,
    peer: Peer,
  ): Promise<Attachment> {
    const { principal } = caller;
    const { claimed, claim } = await this.#claim(group, order, principal);
    this.#settleFormer(claimed);
    const session = this.#create({ group, principal, claim }, claimed);
    const { will, expiryMs, protocol } = order;
    const { owner } = claim;
    const createdAt = storedOf(claimed)?.createdAt ?? claim.now;
    const known: Connected = { name, group, session, principal, protocol, peer, will, expiryMs, createdAt, owner };
    this.#connected.set(name, known);
    this.#wakeUp(session.id);
    if (claimed.former !== undefined) this.#wakeUp(claimed.former.id);
    this.#willBytes += willBytes(known.will);
    const isPresent = claimed.status === "resumed";
    order.onConnected({ session, isPresent });
    session.connect(peer, order.windowMax);
    return {
      session,
      isPresent,
      subscribe: (orders) => this.#filters.subscribe({ session, group, caller }, orders),
      unsubscribe: (filters) => this.#filters.unsubscribe({ session, group }, filters),
      detach: (leave) => {
        if (this.#connected.get(name) === known) this.#leave(known, leave);
      },
    };
  }

  async #claim(group: Group, order: AttachOrder, principal: Principal) {
    const { store, randomness, nodeId, clock, isShared, logger } = this.#parts;
    const { protocol, key, will, expiryMs, isClean } = order;
    await this.#times.advance(group.id);
    for (let tries = 0; tries < claimsMax; tries += 1) {
      const claim: SessionClaim = {
        groupId: group.id,
        protocol,
        key,
        principal: encodePrincipal(principal),
        will: will && encodeWill(will),
        willDelayMs: will?.delayMs ?? 0,
        expiryMs,
        newId: randomness.uuid() as SessionId, // Any UUID is one.
        newEpoch: isShared ? Math.floor(randomness.fraction() * firstEpochMax) : 0,
        generation: await group.findGeneration(),
        position: indexedUpTo(group),
        owner: nodeId(),
        now: clock.now(),
        isClean,
        isStored: isShared || expiryMs > 0,
      };
      const claimed = await store.sessions.claimSession(claim);
      if (claimed.status === "damaged") {
        logger.error("session dropped: its row in the store is damaged", {
          key,
          remedy: "its client subscribes again",
        });
      } else if (claimed.status !== "went-back") {
        if (claimed.status === "begun" && claim.isStored) await this.#sweeper.makeRoom();
        return { claimed, claim };
      }
    }
    throw new BrokerError("busy", { details: "the index rolls back" });
  }

  /** The will of a connection that this one ends, and of a session that has ended, is due. */
  #settleFormer(claimed: Exclude<SessionClaimed, { status: "damaged" | "went-back" }>): void {
    const { former } = claimed;
    if (former === undefined) return;
    const isTakenOver = former.detachedAt === undefined && former.willDelayMs === 0;
    if (claimed.status === "begun" || isTakenOver) void this.#sweeper.publishWill(former);
  }

  #create(
    { group, principal, claim }: { readonly group: Group; readonly principal: Principal; readonly claim: SessionClaim },
    claimed: Exclude<SessionClaimed, { status: "damaged" | "went-back" }>,
  ): Session {
    const { access, toSessionParts } = this.#parts;
    const mayReceive = access.receiverFor(principal, group.id);
    const parts = { ...toSessionParts(group.id, mayReceive), shares: this.#sharesOf(group.id) };
    const resumed = claimed.status === "resumed" ? claimed.current : undefined;
    const stored = storedOf(claimed);
    return new Session(parts, {
      id: stored?.id ?? claim.newId,
      epoch: stored?.epoch ?? claim.newEpoch,
      taken: stored?.taken ?? claim.position,
      underWay: stored === undefined ? { window: new DeliveryWindow(), retained: [] } : takenUp(stored, claim.position),
      inbound: this.#unreleased.take(stored?.id ?? claim.newId),
      filters: resumed?.filters ?? [],
      isStopped: this.#stopped.has(group.id),
      keeper: claim.expiryMs > 0 || resumed !== undefined ? this.writer : undefined,
    });
  }

  /** Ends the connection of that name that this node has, as one that is taken over. */
  async #endLocal(name: string): Promise<void> {
    const known = this.#connected.get(name);
    if (known === undefined) return;
    known.peer.ended("taken-over"); // its listener may detach it now, which ends it in a later turn
    const { session } = known;
    this.#release(known);
    if (session.isStored && !session.isStopped)
      await this.#parts.store.sessions.saveSessions([session.state], { isDurable: false });
    else if (known.will !== undefined && !this.#parts.isShared)
      void this.#parts.wills.publish(known.will, known.principal);
    // Its shares keep their places until the connection that takes over is their member.
    if (session.isStored && session.isMember) this.#dormant.set(session.id, session);
    else session.remove();
  }

  /** From now on the connection has no session. */
  #release(known: Connected): void {
    if (this.#connected.get(known.name) !== known) return;
    this.#connected.delete(known.name);
    this.#willBytes -= willBytes(known.will);
    known.session.disconnect();
    this.writer.forget(known.session);
    if (known.session.isStored) this.#unreleased.keep(known.session);
  }

  #leave(known: Connected, leave: Leave): void {
    this.#release(known);
    const { session, principal } = known;
    const will = leave.isRegular ? undefined : known.will;
    if (!session.isStored && !this.#parts.isShared) {
      session.remove();
      if (will !== undefined) void this.#parts.wills.publish(will, principal);
      return;
    }
    const left = this.#turns.run(known.name, () => this.#detach(known, { will, expiryMs: leave.expiryMs }));
    this.#leaving.add(left);
    void left.finally(() => this.#leaving.delete(left));
  }

  /** Tries until it is written. Never rejects. */
  async #detach(
    { group, session }: Connected,
    { will, expiryMs }: { readonly will: WillOrder | undefined; readonly expiryMs: number },
  ): Promise<void> {
    const { store, clock, limits, logger } = this.#parts;
    const legacy = { will: will && encodeWill(will), willDelayMs: will?.delayMs ?? 0, expiryMs };
    while (!this.#stopping.signal.aborted) {
      try {
        await group.changes.shared(async () => {
          await this.#times.advance(group.id);
          if (!session.isStopped) await store.sessions.saveSessions([session.state], { isDurable: false });
          await store.sessions.detachSession(session, legacy);
        });
        break;
      } catch (error) {
        logger.warn("end of a connection not written", { sessionId: session.id, error });
        await pause(clock, limits.retryDelayMsMin, this.#stopping.signal);
      }
    }
    if (session.isMember && expiryMs > 0 && !this.#stopping.signal.aborted) this.#dormant.set(session.id, session);
    else session.remove();
    const key = { id: session.id, epoch: session.epoch + 1 };
    this.#sweeper.lookAfter(group.id, {
      key,
      delayMs: Math.min(expiryMs, will === undefined ? expiryMs : will.delayMs),
    });
  }

  /** Another takes its place in its shares, or it is no more. */
  #wakeUp(id: SessionId): void {
    this.#dormant.get(id)?.remove();
    this.#dormant.delete(id);
    this.#unreleased.forget(id);
  }

  #sharesOf(groupId: GroupId): Shares {
    const shares = this.#shares.get(groupId);
    if (shares === undefined) throw new BrokerError("groupUnknown");
    return shares;
  }

  #onRefused(refused: readonly Written[]): void {
    for (const { session } of this.#connected.values()) if (refused.includes(session)) this.#readSoon(session);
  }

  #readSoon(session: Session): void {
    void this.#readUntilDone(session);
  }

  async #readUntilDone(session: Session): Promise<void> {
    const { clock, limits, logger } = this.#parts;
    const { signal } = this.#stopping;
    while (!signal.aborted && this.#find(session.id)?.session === session) {
      try {
        await this.#readAgain(session);
        return;
      } catch (error) {
        logger.warn("session not read again", { sessionId: session.id, error });
        await pause(clock, limits.retryDelayMsMin, signal);
      }
    }
  }

  /** Another node has taken the session, or it has gone back: then it goes on from its row. */
  async #readAgain(session: Session): Promise<void> {
    const row = await this.#parts.store.sessions.findSession(session.id);
    const known = this.#find(session.id);
    if (known?.session !== session || (row?.session.epoch === session.epoch && !session.isStopped)) return;
    const isOwn = row !== undefined && row.session.detachedAt === undefined && row.session.owner === this.#ownerNow();
    if (isOwn) {
      if (!this.#stopped.has(known.group.id)) session.restart(row);
      return;
    }
    known.peer.ended("taken-over");
    this.#release(known);
    session.remove();
  }

  #ownerNow(): NodeId | undefined {
    try {
      return this.#parts.nodeId();
    } catch {
      return undefined;
    }
  }

  #of(groupId: GroupId): readonly Session[] {
    return [...this.#connected.values()].flatMap(({ group, session }) => (group.id === groupId ? session : []));
  }

  #find(id: string): Connected | undefined {
    for (const known of this.#connected.values()) if (known.session.id === id) return known;
    return undefined;
  }

  #checkRoom(name: string, will: WillOrder | undefined): void {
    const { willBytesMax, sessionsMax } = this.#parts.limits;
    if (this.#willBytes + willBytes(will) > willBytesMax) {
      throw new BrokerError("busy", { details: `the wills kept at this node have ${willBytesMax} bytes` });
    }
    if (this.#connected.size >= sessionsMax && !this.#connected.has(name)) {
      throw new BrokerError("busy", { details: `${sessionsMax} sessions are connected` });
    }
  }
}
