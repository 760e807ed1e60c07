import type { GroupId } from "../../domain/group-id.ts";
import type { NodeId } from "../../domain/node.ts";
import { minOf, type Position, positionZero } from "../../domain/position.ts";
import { countsFor, type StoredQuota } from "../../domain/quota.ts";
import type { SubscriptionId } from "../../domain/subscription.ts";
import type {
  DueWill,
  FilterChange,
  StoredConnectionEnd,
  SessionClaim,
  SessionClaimed,
  SessionId,
  SessionKey,
  SessionName,
  SessionState,
  SessionStore,
  SessionWithFilters,
  StoredFilter,
  StoredSession,
} from "../../ports/session-store.ts";
import { mayResume, toDueWill, toNewSession } from "../../ports/claimed-session.ts";
import { endsAt } from "../../ports/session-store.ts";
import type { TopicFilter } from "../../domain/topic-filter.ts";
import { MemoryShares } from "./memory-shares.ts";

interface Kept {
  session: StoredSession;
  filters: readonly StoredFilter[];
}

export interface MemorySessionsOptions {
  readonly generationOf: (groupId: GroupId) => number;
  /** Called after a change of a session that its owner did not make. */
  readonly onChanged?: ((id: SessionId) => void) | undefined;
  /** Whether a node is a member. By default, no node is. */
  readonly isMember?: ((nodeId: NodeId) => boolean) | undefined;
}

/** Sessions in memory. Each call makes all its changes in one turn of the event loop. */
export class MemorySessions implements SessionStore {
  readonly #options: MemorySessionsOptions;
  readonly #kept = new Map<SessionId, Kept>();
  readonly #idsByName = new Map<string, SessionId>();
  /** The session of each filter: calls that name a filter must not search tens of thousands of sessions. */
  readonly #idsByFilter = new Map<SubscriptionId, SessionId>();
  readonly #times = new Map<GroupId, number>();
  readonly shares = new MemoryShares({
    epochOf: (id) => this.epochOf(id),
    isMember: (groupId, filter) => this.#hasMember(groupId, filter),
  });

  constructor(options: MemorySessionsOptions) {
    this.#options = options;
  }

  /** The epoch of a session; undefined if the session does not exist. */
  epochOf(id: SessionId): number | undefined {
    return this.#kept.get(id)?.session.epoch;
  }

  /** The owner of each session that has a connection. */
  ownersOfConnected(): readonly (NodeId | undefined)[] {
    const connected = [...this.#kept.values()].filter(({ session }) => session.detachedAt === undefined);
    return connected.map(({ session }) => session.owner);
  }

  async claimSession(claim: SessionClaim): Promise<SessionClaimed> {
    const id = this.#idsByName.get(nameOf(claim));
    const kept = id === undefined ? undefined : this.#kept.get(id);
    const former = kept?.session;
    const isResumed = kept !== undefined && former !== undefined && mayResume(claim, kept) && !this.#isOver(former);
    if (kept !== undefined && isResumed) {
      const dueWill = this.#keepDueWill(claim, former, isResumed);
      kept.session = { ...former, ...claimed(claim), epoch: former.epoch + 1 };
      this.#options.onChanged?.(former.id);
      return { status: "resumed", former, current: { ...kept }, dueWill };
    }
    if (claim.isStored && former === undefined && !claim.mayBegin) return { status: "full" };
    if (claim.isStored && this.#isStale(claim)) return { status: "rolled-back" };
    const quota = former === undefined && claim.isStored ? this.#findExceeded(claim.quotas ?? []) : undefined;
    if (quota !== undefined) return { status: "over-quota", quota };
    const dueWill = former && this.#keepDueWill(claim, former, isResumed);
    if (former !== undefined) {
      this.#delete(former.id);
      this.#options.onChanged?.(former.id);
    }
    const current = claim.isStored ? toNewSession(claim) : undefined;
    if (current !== undefined) this.#add(current);
    return { status: "begun", former, current, dueWill };
  }

  async findSession(id: SessionId): Promise<SessionWithFilters | undefined> {
    const kept = this.#kept.get(id);
    return kept && { ...kept };
  }

  async saveSessions(rows: readonly SessionState[]): Promise<readonly SessionId[]> {
    return rows.flatMap(({ id, epoch, cursor, taken, outside, inFlight, settled = [] }) => {
      const state = { cursor, taken, outside, inFlight: Uint8Array.from(inFlight) };
      if (!this.#change({ id, epoch }, state)) return [id];
      this.shares.settle(id, settled);
      return [];
    });
  }

  async saveSessionFilters(key: SessionKey, change: FilterChange): Promise<"saved" | "refused" | "rolled-back"> {
    const kept = this.#find(key);
    if (kept === undefined) return "refused";
    const { put, removed, generation, replacesAll = false } = change;
    const isPlaced = put.some(({ startsAfter }) => startsAfter > positionZero);
    if (isPlaced && this.#options.generationOf(kept.session.groupId) !== generation) return "rolled-back";
    const left = replacesAll ? kept.filters.map(({ filter }) => filter) : removed;
    const gone = new Set([...left, ...put.map(({ filter }) => filter)]);
    const filters = [...kept.filters.filter(({ filter }) => !gone.has(filter)), ...put];
    this.#setFilters(kept, filters.toSorted(byFilterId));
    this.shares.join(kept.session.groupId, put);
    this.shares.leave(kept.session.groupId, left);
    return "saved";
  }

  async detachSession(
    key: SessionKey,
    { will, willDelayMs, expiryMs }: Omit<StoredConnectionEnd, "principal">,
  ): Promise<boolean> {
    const { session } = this.#find(key) ?? {};
    if (session === undefined) return false;
    const end = { will, willDelayMs, expiryMs };
    return this.#change(key, { ...end, ...this.#detached({ ...session, ...end }) });
  }

  async takeDueSession(key: SessionKey, owner: NodeId | undefined): Promise<StoredSession | undefined> {
    if (this.#find(key)?.session.detachedAt === undefined) return undefined;
    this.#change(key, { owner, epoch: key.epoch + 1 });
    return this.#kept.get(key.id)?.session;
  }

  async settleWill(key: SessionKey): Promise<boolean> {
    return this.#change(key, { will: undefined, willDueAt: undefined, owner: undefined });
  }

  async removeSession(key: SessionKey): Promise<boolean> {
    return this.#find(key) !== undefined && this.#delete(key.id);
  }

  async detachLost(groupId: GroupId): Promise<void> {
    const { isMember = () => false } = this.#options;
    this.detachWhere(({ owner, detachedAt, ...session }) => {
      const isLost = owner === undefined ? detachedAt === undefined : !isMember(owner);
      return session.groupId === groupId && isLost;
    });
  }

  async findSessionTime(groupId: GroupId): Promise<number> {
    return this.#timeOf(groupId);
  }

  async advanceSessionTime(groupId: GroupId, byMs: number): Promise<number> {
    const time = this.#timeOf(groupId) + byMs;
    this.#times.set(groupId, time);
    return time;
  }

  async listDueSessions(groupId: GroupId, atMost: number): Promise<readonly SessionKey[]> {
    const now = this.#timeOf(groupId);
    return [...this.#kept.values()]
      .map(({ session }) => ({ session, dueAt: dueAt(session) }))
      .filter(({ session, dueAt: at }) => session.groupId === groupId && session.owner === undefined && at <= now)
      .toSorted((left, right) => left.dueAt - right.dueAt)
      .slice(0, atMost)
      .map(({ session: { id, epoch } }) => ({ id, epoch }));
  }

  async listSessions(page: { readonly after: SessionId | undefined; readonly limit: number }) {
    const ids = [...this.#kept.keys()].filter((id) => page.after === undefined || id > page.after).toSorted();
    return ids.slice(0, page.limit).flatMap((id) => this.#kept.get(id) ?? []);
  }

  async findFilterOwner(id: SubscriptionId): Promise<SessionWithFilters | undefined> {
    return this.#findWithFilter(id);
  }

  async removeSessionFilter(id: SubscriptionId): Promise<boolean> {
    const kept = this.#findWithFilter(id);
    if (kept === undefined) return false;
    const removed = kept.filters.filter((filter) => filter.id === id).map(({ filter }) => filter);
    this.#setFilters(
      kept,
      kept.filters.filter((filter) => filter.id !== id),
    );
    this.shares.leave(kept.session.groupId, removed);
    this.shares.keep(kept.session, kept.session.epoch + 1);
    kept.session = { ...kept.session, epoch: kept.session.epoch + 1 };
    this.#options.onChanged?.(kept.session.id);
    return true;
  }

  async listDetached(groupId: GroupId, atMost: number): Promise<readonly SessionKey[]> {
    const detached = this.#detachedOf(groupId).toSorted((left, right) => left.detachedAt - right.detachedAt);
    return detached.slice(0, atMost).map(({ id, epoch }) => ({ id, epoch }));
  }

  async countDetached(groupId: GroupId): Promise<number> {
    return this.#detachedOf(groupId).length;
  }

  /** Detaches the sessions for which `isLost` returns true. A detached session keeps its `detachedAt` and loses its owner, if it has one. */
  detachWhere(isLost: (session: StoredSession) => boolean): void {
    for (const kept of this.#kept.values()) {
      const { session } = kept;
      if (!isLost(session)) continue;
      if (session.detachedAt === undefined) kept.session = { ...session, ...this.#detached(session) };
      else if (session.owner !== undefined) kept.session = { ...session, owner: undefined, epoch: session.epoch + 1 };
    }
  }

  /** Moves positions beyond `end` back to it. If there is a `keeper`, every session that this node does not own gets a new epoch. */
  cutBack(groupId: GroupId, end: Position, keeper?: NodeId): void {
    this.shares.cutBack(groupId, end);
    for (const kept of this.#kept.values()) {
      const { session } = kept;
      if (session.groupId !== groupId) continue;
      const epoch = keeper === undefined || session.owner === keeper ? session.epoch : session.epoch + 1;
      const { cursor, taken, outside } = session;
      const positions = { cursor: minOf(cursor, end), taken: minOf(taken, end), outside: minOf(outside, end) };
      kept.session = { ...session, epoch, ...positions };
      kept.filters = kept.filters.map((filter) => ({ ...filter, startsAfter: minOf(filter.startsAfter, end) }));
      if (epoch === session.epoch) continue;
      this.shares.keep(session, epoch);
      this.#options.onChanged?.(session.id);
    }
  }

  #add(session: StoredSession): void {
    this.#kept.set(session.id, { session, filters: [] });
    this.#idsByName.set(nameOf(session), session.id);
  }

  #keepDueWill(claim: SessionClaim, former: StoredSession, isResumed: boolean): DueWill {
    const dueWill = toDueWill(claim, former, { time: this.#timeOf(claim.groupId), isResumed });
    if (dueWill === undefined) return undefined;
    if (!claim.mayKeepWill || this.#idsByName.has(nameOf(dueWill))) return "unstored";
    this.#add(dueWill);
    return dueWill;
  }

  #findExceeded(quotas: readonly StoredQuota[]): StoredQuota | undefined {
    const owners = quotas.length === 0 ? [] : [...this.#kept.values()].map(({ session }) => session.principal);
    return quotas.find((quota) => owners.filter((owner) => countsFor(quota, owner)).length >= quota.max);
  }

  #detachedOf(groupId: GroupId): readonly (SessionKey & { readonly detachedAt: number })[] {
    return [...this.#kept.values()].flatMap(({ session: { id, epoch, detachedAt, groupId: own } }) => {
      return detachedAt === undefined || own !== groupId ? [] : { id, epoch, detachedAt };
    });
  }

  #hasMember(groupId: GroupId, text: TopicFilter): boolean {
    return [...this.#kept.values()].some(
      ({ session, filters }) => session.groupId === groupId && filters.some(({ filter }) => filter === text),
    );
  }

  /** Returns whether the session existed. */
  #delete(id: SessionId): boolean {
    const kept = this.#kept.get(id);
    if (kept === undefined) return false;
    const { session, filters } = kept;
    const texts = filters.map(({ filter }) => filter);
    this.#setFilters(kept, []);
    this.#kept.delete(id);
    this.#idsByName.delete(nameOf(session));
    this.shares.leave(session.groupId, texts);
    return true;
  }

  #findWithFilter(id: SubscriptionId): Kept | undefined {
    const sessionId = this.#idsByFilter.get(id);
    return sessionId && this.#kept.get(sessionId);
  }

  #setFilters(kept: Kept, filters: readonly StoredFilter[]): void {
    const { id: sessionId } = kept.session;
    for (const { id } of kept.filters) if (this.#idsByFilter.get(id) === sessionId) this.#idsByFilter.delete(id);
    for (const { id } of filters) this.#idsByFilter.set(id, sessionId);
    kept.filters = filters;
  }

  #find({ id, epoch }: SessionKey): Kept | undefined {
    const kept = this.#kept.get(id);
    return kept?.session.epoch === epoch ? kept : undefined;
  }

  #change(key: SessionKey, change: Partial<StoredSession>): boolean {
    const kept = this.#find(key);
    if (kept === undefined) return false;
    kept.session = { ...kept.session, ...change };
    return true;
  }

  #isStale({ groupId, position, generation }: SessionClaim): boolean {
    return position > positionZero && this.#options.generationOf(groupId) !== generation;
  }

  #isOver(session: StoredSession): boolean {
    const end = endsAt(session);
    return end === undefined ? session.expiryMs === 0 : end <= this.#timeOf(session.groupId);
  }

  #detached({ groupId, epoch, will, willDelayMs }: StoredSession) {
    const detachedAt = this.#timeOf(groupId);
    const willDueAt = will === undefined ? undefined : detachedAt + willDelayMs;
    return { owner: undefined, epoch: epoch + 1, detachedAt, willDueAt };
  }

  #timeOf(groupId: GroupId): number {
    return this.#times.get(groupId) ?? 0;
  }
}

function nameOf({ groupId, protocol, key }: SessionName): string {
  return JSON.stringify([groupId, protocol, key]);
}

/** The fields of a session that a new connection sets. */
function claimed({ principal, will, willDelayMs, expiryMs, owner }: SessionClaim) {
  return { principal, will, willDelayMs, expiryMs, owner, detachedAt: undefined, willDueAt: undefined };
}

function dueAt(session: StoredSession): number {
  const { willDueAt = Number.POSITIVE_INFINITY } = session;
  return Math.min(willDueAt, endsAt(session) ?? Number.POSITIVE_INFINITY);
}

function byFilterId(left: StoredFilter, right: StoredFilter): number {
  return left.id < right.id ? -1 : 1;
}
