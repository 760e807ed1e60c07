import { BrokerError, quote } from "@stele/wire";
import { minOf } from "../../domain/position.ts";
import { eventFilterOf } from "../../domain/shared-filter.ts";
import { isUuid } from "../../domain/uuid.ts";
import type { Pauses } from "../../lib/time-slices.ts";
import type { Clock } from "../../ports/clock.ts";
import type { SessionId, SessionWithFilters } from "../../ports/session-store.ts";
import type { Store } from "../../ports/store.ts";
import type { Groups } from "../group.ts";
import { PendingCounts, type FilterCursor } from "../query/pending-counts.ts";
import type { SessionEntriesOptions } from "../query/session-entries.ts";
import { SharePlaces } from "../query/share-places.ts";
import type { ConnectedSession } from "../connected-session.ts";
import type { Page, PageCall, SessionsCall, SessionView } from "./calls.ts";
import { checkText } from "./check-text.ts";
import { findNodeAddresses, type ListableNodes, type NodeAddresses } from "./node-addresses.ts";
import type { Paused } from "./paused.ts";
import { findWaitingTimes } from "./waiting-times.ts";

/** Maximum number of sessions that one call reads in search of matches. The next page continues from there. */
const rowsSearchedMax = 1_000;

/** Sessions per read of a search: few, since each has up to 1,000 filters. */
const rowsReadMax = 100;

/** A page ends after the session that brings it to this many filters: each takes about 100 bytes of the answer, which is encoded in one turn. */
const filtersListedMax = 10_000;

export interface SessionFinderOptions {
  readonly store: Store;
  readonly groups: Groups;
  readonly clock: Clock;
  readonly sessions: SessionEntriesOptions["sessions"];
  readonly nodes: ListableNodes;
}

interface ReadOptions {
  readonly size: number;
  readonly addresses: NodeAddresses;
  readonly connected: ReadonlyMap<SessionId, ConnectedSession>;
  /** The connected sessions that are not stored, by id. */
  readonly unstored: readonly ConnectedSession[];
}

type Found = Omit<SessionView, "lag" | "waitingFrom" | "waitingSince">;
type Counted = Omit<SessionView, "waitingSince">;

/** Finds the sessions of MQTT, STOMP and tails: those in the store, and those that exist only while they are connected to this node. */
export class SessionFinder {
  readonly #options: SessionFinderOptions;

  constructor(options: SessionFinderOptions) {
    this.#options = options;
  }

  /** Lists matching sessions in the order of their identifiers. @throws BrokerError 200001 for the cursor or the owner; 100306, 200211 for the group. */
  async search(call: SessionsCall, page: PageCall & Paused): Promise<Page<SessionView>> {
    const { items, next } = await this.#find(call, page);
    return { items: await this.#withTimes(items), next };
  }

  async #find(call: SessionsCall, { after, limit, slices }: PageCall & Paused): Promise<Page<Counted>> {
    checkText({ owner: call.owner });
    const groupId = call.groupId === undefined ? undefined : this.#options.groups.getAny(call.groupId).id;
    const addresses = await findNodeAddresses(this.#options.nodes);
    const { lagMin = 0, ...rest } = call;
    const takesAll = Object.values(call).every((value) => value === undefined);
    const size = takesAll ? Math.min(limit, rowsReadMax) : rowsReadMax;
    let filterCount = 0;
    const items: Counted[] = [];
    let last = after === undefined ? undefined : toSessionId(after, '"cursor" is not from this list');
    const connected = this.#connected();
    const unstored = byId([...connected.values()].filter((one) => !one.isStored));
    for (let read = 0; read < rowsSearchedMax; read += size) {
      const rows = await this.#read(last, { size, addresses, connected, unstored });
      const matching = rows.filter((one) => matches({ ...rest, groupId }, one));
      for (const view of await this.#countAll(matching, slices)) {
        if (view.lag < lagMin) continue;
        items.push(view);
        filterCount += view.filters.length;
        if (items.length === limit || filterCount >= filtersListedMax) return { items, next: view.session.id };
      }
      if (rows.length < size) return { items, next: undefined };
      last = rows.at(-1)?.session.id;
    }
    return { items, next: last };
  }

  /** @throws BrokerError 200001, 100508. */
  async get(text: string, slices: Pauses): Promise<SessionView> {
    const id = toSessionId(text, "it is not the identifier of a session");
    const known = this.#connected().get(id);
    const stored = known?.isStored === false ? undefined : await this.#options.store.sessions.findSession(id);
    const addresses = await findNodeAddresses(this.#options.nodes);
    const found =
      stored === undefined ? known && toOwn(known, addresses) : this.#toStored(stored, { known, addresses });
    const [view] = await this.#withTimes(found === undefined ? [] : await this.#countAll([found], slices));
    if (view === undefined) throw new BrokerError("sessionNotExist", { details: quote(id) });
    return view;
  }

  /** The next sessions after an identifier; fewer than `size` only at the end of the list. */
  async #read(
    after: SessionId | undefined,
    { size, addresses, connected, unstored }: ReadOptions,
  ): Promise<readonly Found[]> {
    const listed = await this.#options.store.sessions.listSessions({ after, limit: size });
    const stored = listed.map((row) => this.#toStored(row, { known: connected.get(row.session.id), addresses }));
    // Convert only those of this page: a node may have tens of thousands.
    const own = unstored
      .filter(({ session }) => session.id > (after ?? ""))
      .slice(0, size)
      .map((one) => toOwn(one, addresses));
    return byId([...stored, ...own]).slice(0, size);
  }

  #connected(): ReadonlyMap<SessionId, ConnectedSession> {
    return new Map(this.#options.sessions.listConnected().map((one) => [one.session.id, one]));
  }

  #toStored(
    { session, filters }: SessionWithFilters,
    { known, addresses }: { readonly known: ConnectedSession | undefined; readonly addresses: NodeAddresses },
  ): Found {
    const isSuspended = session.protocol === "STOMP" && this.#options.sessions.isSuspended(session);
    const current = known?.session.epoch === session.epoch ? known : { session, filters, isSuspended };
    const isConnected = session.detachedAt === undefined;
    return { ...pick(current), isConnected, node: addresses.get(session.owner) };
  }

  /** Counts the waiting events of all sessions together. */
  async #countAll(found: readonly Found[], slices: Pauses): Promise<readonly Counted[]> {
    const counts = new PendingCounts({ ...this.#options, slices });
    const places = await SharePlaces.read(this.#options.store.shares, found);
    for (const one of found) {
      for (const filterCursor of filterCursorsOf(one, places)) counts.add(filterCursor);
      await slices.pause();
    }
    await counts.read();
    const counted: Counted[] = [];
    for (const one of found) {
      const pending = filterCursorsOf(one, places).map((filterCursor) => counts.find(filterCursor));
      const lag = pending.reduce((sum, { count }) => sum + count, 0);
      const firsts = pending.flatMap(({ first }) => first ?? []);
      counted.push({ ...one, lag, waitingFrom: firsts.length === 0 ? undefined : firsts.reduce(minOf) });
      await slices.pause();
    }
    return counted;
  }

  async #withTimes(counted: readonly Counted[]): Promise<readonly SessionView[]> {
    const waiting = counted.map(({ session, waitingFrom }) => ({ groupId: session.groupId, from: waitingFrom }));
    const times = await findWaitingTimes(waiting, this.#options);
    return counted.map((one, index) => ({ ...one, waitingSince: times[index] }));
  }
}

function byId<T extends Pick<ConnectedSession, "session">>(sessions: readonly T[]): readonly T[] {
  return sessions.toSorted((left, right) => (left.session.id < right.session.id ? -1 : 1));
}

function toOwn(one: ConnectedSession, addresses: NodeAddresses): Found {
  return { ...pick(one), isConnected: true, node: addresses.get(one.session.owner) };
}

function pick({ session, filters, isSuspended }: Pick<SessionView, "session" | "filters" | "isSuspended">) {
  return { session, filters, isSuspended };
}

/** Each filter, with the cursor after which to count its events. */
function filterCursorsOf(
  { session, filters }: Pick<SessionView, "session" | "filters">,
  places: SharePlaces,
): readonly FilterCursor[] {
  const { groupId } = session;
  return filters.map((one) => ({
    groupId,
    filter: eventFilterOf(one.filter),
    cursor: places.cursorOf(session, one),
  }));
}

function matches(
  { groupId, kind, isConnected, owner, node }: Omit<SessionsCall, "lagMin">,
  { session, isConnected: hasConnection, node: address }: Found,
): boolean {
  const pairs: readonly (readonly [unknown, unknown])[] = [
    [groupId, session.groupId],
    [kind, session.protocol],
    [isConnected, hasConnection],
    [owner, session.principal],
    [node, address],
  ];
  return pairs.every(([wanted, value]) => wanted === undefined || wanted === value);
}

function toSessionId(text: string, problem: string): SessionId {
  if (isUuid(text)) return text as SessionId; // Checked.
  throw new BrokerError("parameterInvalid", { details: `${problem}: ${quote(text)}` });
}
