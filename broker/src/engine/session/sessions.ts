import { BrokerError } from "@stele/wire";
import type { GroupId } from "../../domain/group-id.ts";
import { type Position, positionZero } from "../../domain/position.ts";
import type { SubscriptionId } from "../../domain/subscription.ts";
import { Cancellation } from "../../lib/cancellation.ts";
import { KeyedMutex } from "../../lib/keyed-mutex.ts";
import { untilAborted } from "../../lib/until-aborted.ts";
import type { SessionClaim, SessionGranted, SessionId, StoredSession } from "../../ports/session-store.ts";
import type { Caller, ChangedOwners, Principal } from "../access/caller.ts";
import type { Attachment, AttachRequest } from "../broker.ts";
import type { Readers } from "../dispatch/readers.ts";
import type { Group } from "../group.ts";
import type { ConnectedSession } from "../connected-session.ts";
import { Attaches } from "./attaches.ts";
import type { Attaching, Connected, Leave } from "./connected.ts";
import { checkAdmission, checkMembership, isKept, toConnectedSession, warningOf } from "./connected.ts";
import { inSlices } from "../../lib/time-slices.ts";
import { readOnEach, stopEach } from "./session-slices.ts";
import { ConnectedOwners } from "./connected-owners.ts";
import { FilterRemoval, nameOf } from "./filter-removal.ts";
import { EndedConnections } from "./stored/ended-connections.ts";
import { Lingering } from "./lingering.ts";
import { LostAttaches } from "./stored/lost-attaches.ts";
import type { EndReason, Peer } from "./peer.ts";
import { RetainedReads } from "./retained/retained-reads.ts";
import { Session } from "./session.ts";
import { type ReaderParts, type SessionParts, type SessionsParts, toSessionParts } from "./session-parts.ts";
import { ClaimRefused, ClaimSkipped, SessionClaims } from "./stored/session-claims.ts";
import { beginningOf, decodeProgress, resumeProgress, storedOf } from "./stored/session-codec.ts";
import { SessionFilters } from "./session-filters.ts";
import { LaterReads } from "./stored/later-reads.ts";
import { SessionRoom } from "./stored/session-room.ts";
import { SessionSweeper } from "./stored/session-sweeper.ts";
import { Shares } from "./shares/shares.ts";
import { Streams } from "./streams.ts";
import { SessionWriters, type WritableSession } from "./stored/session-writer.ts";
import { Unreleased } from "./unreleased.ts";

/** The sessions that are connected to this node. A session that outlasts its connections is also in the store. While it has none, it is only in the store. */
export class Sessions implements Readers {
  readonly #parts: SessionsParts;
  readonly #connected = new Map<string, Connected>();
  /** The same, by identifier. */
  readonly #byId = new Map<string, Connected>();
  readonly #owners: ConnectedOwners;
  readonly #locks = new KeyedMutex<string>();
  /** Not an AbortController: its signal compares each new listener with all others, and each session that waits for the store adds a listener. */
  readonly #stopping = new Cancellation();
  readonly #attaches = new Attaches(this.#locks);
  readonly #ended: EndedConnections;
  readonly #filters: SessionFilters;
  readonly #removal: FilterRemoval;
  readonly #streams: Streams;
  readonly #room: SessionRoom;
  readonly #claims: SessionClaims;
  readonly #lost: LostAttaches;
  readonly #laterReads: LaterReads;
  readonly #sweeper: SessionSweeper;
  readonly writers: SessionWriters;
  readonly #shares: ReadonlyMap<GroupId, Shares>;
  readonly #ofEach: Pick<SessionParts, "retainedReads" | "filterOwners">;
  readonly #unreleased = new Unreleased();
  /** Groups whose index rolls back. */
  readonly #stopped = new Set<GroupId>();

  constructor(parts: SessionsParts) {
    this.#parts = parts;
    this.#owners = new ConnectedOwners(parts);
    const onRefused = (sessions: readonly WritableSession[]): void => this.#onRefused(sessions);
    const groupIds = parts.groups.all.map(({ id }) => id);
    this.writers = new SessionWriters(groupIds, { ...parts, onRefused });
    this.#filters = new SessionFilters({
      ...parts,
      onRefused: (session) => this.#laterReads.read(session),
      keep: (session) => this.#keep(session),
    });
    this.#room = new SessionRoom(parts);
    this.#streams = new Streams(parts);
    const checkReturned = (groupId: GroupId): void => this.#sharesOf(groupId).checkReturned();
    const own = { ...parts, room: this.#room, connected: this.#connected, locks: this.#locks, checkReturned };
    this.#claims = new SessionClaims({ ...own, streams: this.#streams });
    const signal = this.#stopping;
    this.#lost = new LostAttaches({ ...own, signal, isUnderWay: (id) => this.#sweeper.isUnderWay(id) });
    this.#laterReads = new LaterReads({
      ...own,
      signal,
      find: (session) => this.#findConnected(session),
      isStopped: ({ group }) => this.#stopped.has(group.id),
      end: (known) => this.#ended.end(known, () => this.#end(known, "removed")),
      release: (known) => this.#release(known),
    });
    const onChanged = (session: Session): Promise<void> => this.#laterReads.readUntilDone(session);
    const onEnded = (known: Connected): Promise<void> => this.#ended.track(this.#end(known, "removed"));
    const filterOwners = new Map<SubscriptionId, string>();
    const findOwner = (id: SubscriptionId): Connected | undefined => this.#byId.get(filterOwners.get(id) ?? "");
    this.#removal = new FilterRemoval({ ...own, findOwner, onChanged, onEnded });
    this.#sweeper = new SessionSweeper({ ...own, signal, onEnded: (groupId, id) => this.#forget(groupId, id) });
    this.#ended = new EndedConnections({ ...own, writers: this.writers, sweeper: this.#sweeper, signal });
    const retainedReads = new RetainedReads({ ...parts, store: parts.storeWithoutDropped });
    this.#ofEach = { retainedReads, filterOwners };
    const toShareParts = (id: GroupId): ReaderParts => ({ ...parts.toSessionParts(id, () => true), retainedReads });
    const ofShares = { ...parts, signal, toShareParts };
    this.#shares = new Map(groupIds.map((id) => [id, new Shares(id, ofShares)]));
  }

  /** The current state of the sessions that are connected to this node. */
  listConnected(): readonly ConnectedSession[] {
    return [...this.#connected.values()].map(toConnectedSession);
  }

  /** Whether a stored session gets no events, because its client rejected one too often. */
  isSuspended({ inFlight }: StoredSession): boolean {
    return decodeProgress(inFlight).isSuspended;
  }

  /** A warning for the operator about the sessions of a group; undefined if there is none. */
  findWarning(groupId: GroupId): string | undefined {
    return warningOf(this.#of(groupId), this.writers.of(groupId));
  }

  /** See {@link FilterRemoval.run}. */
  removeFilter(id: SubscriptionId, caller: Caller): Promise<boolean> {
    return this.#removal.run(id, caller);
  }

  /** Checks the rights of connected sessions. Call it when rights may have changed. */
  checkRights(changed: ChangedOwners): void {
    this.#owners.check(changed);
  }

  /** Starts the sweep of a group's sessions. Call it when the group has come up. */
  resume(groupId: GroupId): void {
    this.#sweeper.begin(groupId);
  }

  /** Attaches a connection to a session, and ends the session's earlier connection. @throws BrokerError 200205, 200207, 200211, 200300. */
  async attach(caller: Caller, request: AttachRequest, peer: Peer): Promise<Attachment> {
    const group = this.#parts.groups.get(request.groupId);
    const name = nameOf({ ...request, groupId: group.id });
    await this.#sweeper.ready(group.id);
    const will = request.will && { ...request.will, id: this.#parts.randomness.uuid() }; // The store keeps the identifier: see `StoredWill`.
    const attach = (): Promise<Attachment> =>
      this.#withRoom({ name, will, caller }, () =>
        this.#attachLocked({ name, group, caller }, { ...request, will }, peer),
      );
    return this.#attaches.run(name, caller, attach);
  }

  async stop(groupId: GroupId): Promise<void> {
    this.#stopped.add(groupId);
    await Promise.all([this.#sharesOf(groupId).stop(), stopEach(this.#of(groupId), this.#parts.slices)]);
  }

  restart(groupId: GroupId, keptUpTo: Position): void {
    this.#stopped.delete(groupId);
    const all = this.#of(groupId);
    if (this.#parts.isShared) {
      for (const session of all) session.cutBack(keptUpTo);
      this.#laterReads.readAll(all);
    } else {
      for (const session of all) session.restart();
      void readOnEach(all, this.#parts.slices);
    }
    this.#sharesOf(groupId).restart();
  }

  /** Reads a session again. Call it when another node may have changed the session; without `id`, any session. */
  onHint(id?: SessionId): void {
    if (id === undefined) return this.#laterReads.readAll([...this.#connected.values()].map((one) => one.session));
    const { session } = this.#byId.get(id) ?? {};
    if (session !== undefined) void this.#laterReads.readUntilDone(session);
  }

  /** Ends all connections of this node, in slices, since each end takes about 0.1 ms. Other nodes may have the sessions by now. Never rejects. */
  async endStale(): Promise<void> {
    await inSlices([...this.#connected.values()], this.#parts.slices, (known) => {
      if (this.#connected.get(known.name) === known) known.peer.ended("stale"); // This call may detach the session.
      this.#release(known);
    });
  }

  /** Ends every connection. Resolves when the ends are written or `signal` aborts. */
  async stopAll(signal: AbortSignal): Promise<void> {
    this.#ended.beginStop();
    for (const shares of this.#shares.values()) void shares.stop();
    const all = new Set(this.#connected.values());
    for (const { peer } of all) peer.ended("stopping");
    await untilAborted(this.#attaches.close(), signal);
    this.#endLate([...this.#connected.values()].filter((known) => !all.has(known)));
    await untilAborted(this.#filters.stop(), signal);
    await this.#ended.settled(signal);
    this.#stopping.abort();
    await this.#sweeper.stop();
  }

  /** Ends connections that attached while the broker stops. Their clients were never accepted, so their wills are not published. */
  #endLate(connected: readonly Connected[]): void {
    for (const known of connected) {
      known.peer.ended("stopping"); // This call may detach the session.
      void this.#leave(known, { expiryMs: known.expiryMs, isRegular: true });
    }
  }

  async #attachLocked(
    attaching: Pick<Attaching, "name" | "group" | "caller">,
    request: AttachRequest,
    peer: Peer,
  ): Promise<Attachment> {
    const { name, group, caller } = attaching;
    const held = this.#connected.get(name);
    if (held !== undefined) this.#parts.access.checkOwner(caller, held.ownedBy);
    const stream = request.stream && (await this.#streams.check({ group, caller, held }, request, request.stream));
    await this.#streams.startOf(group, stream); // Refuses a wrong offset before the earlier connection ends.
    await this.#endLocal(name);
    try {
      const attach = () => group.changes.shared(() => this.#attach({ ...attaching, held, stream }, request, peer));
      return await this.#claims.inTurn(attaching, attach);
    } catch (error) {
      if (error instanceof ClaimRefused) throw error.refusal;
      if (!(error instanceof ClaimSkipped)) this.#lost.begin();
      throw error;
    }
  }

  async #attach(attaching: Attaching, request: AttachRequest, peer: Peer): Promise<Attachment> {
    const { name, group, caller, stream } = attaching;
    const { principal } = caller;
    const { claimed, claim } = await this.#claims.claim(attaching, request);
    this.#sweeper.returned(name);
    this.#settleFormer(attaching, claimed);
    if (claimed.dueWill !== undefined) this.#ended.drop(name); // The sweeper publishes it. If no will is due, keep the end for a failure of this attach.
    checkMembership(this.#parts, claim);
    this.#ended.drop(name);
    const session = this.#create({ group, principal, claim }, claimed);
    if (stream !== undefined) await this.#streams.begin(session, stream, claim.generation);
    const { will, expiryMs, protocol, key } = request;
    const lingering = new Lingering();
    const who = { name, key, group, session, principal, protocol, peer, lingering };
    const known: Connected = { ...who, will, expiryMs, ...beginningOf(claimed, claim) };
    // Check in the same turn as the registration below: otherwise the membership or a right could end in between.
    try {
      checkMembership(this.#parts, claim);
      checkAdmission(known, this.#parts.access);
    } catch (error) {
      void session.memberships.leaveAll();
      throw error;
    }
    this.#connected.set(name, known);
    this.#byId.set(session.id, known);
    this.#owners.add(known);
    const isPresent = claimed.status === "resumed";
    request.onConnected({ session, isPresent });
    session.connect(peer, request.windowMax);
    // Another node may have claimed the session meanwhile. If its hint came before the registration above, the hint found no session.
    if (this.#parts.isShared) void this.#laterReads.readUntilDone(session);
    return {
      session,
      isPresent,
      subscribe: (sessionFilters) => this.#filters.subscribe({ session, group, caller }, sessionFilters),
      unsubscribe: (filters) => this.#filters.unsubscribe({ session, group, caller }, filters),
      linger: (until) => lingering.add(until),
      detach: (leave) => void this.#leave(known, leave).then(leave.onWritten),
      end: () => this.#ended.end(known, () => this.#end(known)),
    };
  }

  /** Settles the former connection of a claimed session, even if the attach then fails. Publish its will before any event of the new connection. */
  #settleFormer({ group: { id }, held }: Attaching, { status, former, dueWill }: SessionGranted): void {
    if (former === undefined) return;
    if (former.detachedAt !== undefined) this.#room.added(id, -1);
    // Without `held`, the connection was another node's, or that of an attach whose claim got no answer.
    else if (held?.session.memberships.hasJoined !== false) this.#sharesOf(id).checkReturned();
    if (status === "begun") this.#forget(id, former.id);
    if (dueWill !== undefined) this.#sweeper.beginWill(dueWill, former);
  }

  #create(
    { group, principal, claim }: { readonly group: Group; readonly principal: Principal; readonly claim: SessionClaim },
    claimed: SessionGranted,
  ): Session {
    const mayReceiveAll = this.#parts.access.receiverFor(principal, group.id);
    const own = { ...this.#ofEach, shares: this.#sharesOf(group.id), mayReceiveAll };
    const parts = toSessionParts(this.#parts.toSessionParts(group.id, mayReceiveAll), own);
    const resumed = claimed.status === "resumed" ? claimed.current : undefined;
    const stored = storedOf(claimed);
    return new Session(parts, {
      id: stored?.id ?? claim.newId,
      protocol: claim.protocol,
      epoch: stored?.epoch ?? claim.newEpoch,
      taken: stored?.taken ?? claim.position,
      outside: stored?.outside ?? positionZero,
      underWay: resumeProgress(claimed),
      inbound: this.#unreleased.take(stored?.id ?? claim.newId, claimed.former),
      filters: resumed?.filters ?? [],
      isStopped: this.#stopped.has(group.id),
      keeper: isKept(claim) || resumed !== undefined ? this.writers.of(group.id) : undefined,
    });
  }

  /** Ends a session and its connection. The caller must hold the lock of its name. @throws what the store throws; then the sweeper ends the session. */
  async #end(known: Connected, why?: EndReason): Promise<void> {
    if (this.#connected.get(known.name) !== known) return;
    if (why !== undefined) known.peer.ended(why); // This call may detach the session.
    this.#release(known);
    try {
      await this.#claims.keeping(known);
      if (known.session.isStored || this.#parts.isShared) await this.#ended.remove(known);
    } catch (error) {
      void this.#ended.add(known, { will: undefined, expiryMs: 0 });
      throw error;
    }
  }

  /** Ends this node's connection of a session, with the reason `taken-over`. */
  async #endLocal(name: string): Promise<void> {
    // If the connection has ended, its end waits for the lock that this task holds: write it now.
    if (this.#ended.has(name)) await this.#ended.write(name);
    const known = this.#connected.get(name);
    if (known === undefined) return;
    known.peer.ended("taken-over"); // This call may detach the session; its end then waits for the lock.
    const { session, will } = known;
    const hasEnded = this.#connected.get(name) !== known; // If so, #leave settles the will of a session that is only in memory.
    this.#release(known);
    await this.#ended.writeLast(known);
    if (session.isStored || this.#parts.isShared) return;
    if (hasEnded)
      await this.#ended.write(name); // If the store was creating the session's row, #leave added an end; the creation may have failed since.
    else if (will !== undefined) void this.#sweeper.publishUnstored(known, will);
  }

  /** Removes a connection, and disconnects its session. */
  #release(known: Connected): void {
    if (this.#connected.get(known.name) !== known) return;
    this.#connected.delete(known.name);
    this.#byId.delete(known.session.id);
    this.#owners.delete(known);
    known.session.disconnect();
    this.writers.of(known.group.id).forget(known.session);
    if (known.session.isStored) this.#unreleased.keep(known.session);
  }

  /** Does nothing if the connection has ended already. Resolves once the end is written. Never rejects. */
  async #leave(known: Connected, leave: Leave): Promise<void> {
    if (this.#connected.get(known.name) !== known) return;
    this.#release(known);
    const will = leave.isRegular ? undefined : known.will;
    if (!known.session.isStored && !this.#parts.isShared && this.#claims.keeping(known) === undefined) {
      if (will !== undefined) void this.#sweeper.publishUnstored(known, will);
      return;
    }
    await this.#ended.add(known, { will, expiryMs: leave.expiryMs });
  }

  /** Cleans up after a session that has ended. */
  #forget(groupId: GroupId, id: SessionId): void {
    this.#unreleased.forget(id);
    void this.#parts.inlet.forget(groupId, id);
  }

  async #keep(session: Session): Promise<boolean> {
    const known = this.#findConnected(session); // Undefined if its connection has ended.
    return known === undefined || this.#claims.keep(known, this.writers.of(known.group.id));
  }

  #findConnected(session: Session): Connected | undefined {
    const known = this.#byId.get(session.id);
    return known?.session === session ? known : undefined;
  }

  #sharesOf(groupId: GroupId): Shares {
    const shares = this.#shares.get(groupId);
    if (shares === undefined) throw new BrokerError("groupUnknown");
    return shares;
  }

  #onRefused(refused: readonly WritableSession[]): void {
    const all = new Set(refused);
    for (const { session } of this.#connected.values())
      if (all.has(session)) void this.#laterReads.readUntilDone(session);
  }

  /** The sessions of a group, also ended ones whose last state is not yet written: that state must not be ahead of an index that rolled back. */
  #of(groupId: GroupId): readonly Session[] {
    const all = [...this.#connected.values(), ...this.#ended.all];
    return all.flatMap(({ group, session }) => (group.id === groupId ? session : []));
  }

  /** Counts the will while its connection attaches: many may attach at once. */
  async #withRoom<T>(
    { name, will, caller }: Pick<Attaching, "name" | "caller"> & Pick<AttachRequest, "will">,
    attach: () => Promise<T>,
  ): Promise<T> {
    const { sessionsMax } = this.#parts.limits;
    return this.#owners.wills.countWhile(caller.principal, will, async () => {
      if (this.#connected.size < sessionsMax || this.#connected.has(name)) return attach();
      throw new BrokerError("busy", { details: `${sessionsMax} sessions are connected` });
    });
  }
}
