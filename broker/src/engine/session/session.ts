import type { DeliveryWindow, InFlight, Ticket } from "../../domain/delivery-window.ts";
import type { Event } from "../../domain/event.ts";
import type { Interest } from "../../domain/interest.ts";
import { before, maxOf, minOf, type Position, lastPosition } from "../../domain/position.ts";
import type { SessionFilter } from "../../domain/session-filter.ts";
import { isShared } from "../../domain/shared-filter.ts";
import type { TopicFilter } from "../../domain/topic-filter.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import { createDeferred, type Deferred } from "../../lib/deferred.ts";
import type { SessionId, SessionState, SessionWithFilters, StoredFilter } from "../../ports/session-store.ts";
import type { ConnectedSession } from "../broker.ts";
import { indexedUpTo } from "../index-progress.ts";
import { type Connection, createConnection, hasRoomForShares, rollBackDeliveries } from "./connection.ts";
import { FilterSet } from "./filter-set.ts";
import { DeliverySender } from "./delivery-sender.ts";
import { Memberships } from "./shares/memberships.ts";
import { Outgoing } from "./outgoing.ts";
import type { Peer } from "./peer.ts";
import { ReadingLoops, type ReadingParts } from "./reading-loops.ts";
import { Rejections } from "./rejections.ts";
import { Repeater } from "./repeater.ts";
import { type Retained, RetainedEvents } from "./retained/retained.ts";
import { encodeProgress, outsideOf } from "./stored/session-codec.ts";
import type { Keeper, SessionOrigin, SessionParts } from "./session-parts.ts";
import type { WritableSession } from "./stored/session-writer.ts";
import type { Inbound } from "./unreleased.ts";
import { SharedDeliveries } from "./shares/shared-deliveries.ts";
import { stuck, Waiting } from "./waiting.ts";

/**
 * The state of one client across its connections: filters, progress, and unacknowledged events. While it is connected, loops deliver one event after the
 * other to its peer, as long as the window and the peer have room.
 */
export class Session implements ConnectedSession, Interest, WritableSession {
  readonly id: SessionId;
  readonly #parts: SessionParts;
  readonly #filters: FilterSet;
  readonly #window: DeliveryWindow;
  #keeper: Keeper | undefined;
  #epoch: number;
  /** The retained events that filters have not got yet. */
  readonly #retained: RetainedEvents;
  readonly memberships: Memberships;
  readonly #shared = new SharedDeliveries({
    key: () => this.key,
    qosOf: (event, sessionFilter) => this.#filters.qosOf(event, [sessionFilter]),
    give: (event, how) => this.#connection && this.#sender.first(event, this.#connection, how),
    onRoom: () => this.memberships.wake(),
  });
  /** Publishes of QoS 2 that the client has not released, by packet identifier, with their outcomes. */
  readonly inbound: ConnectedSession["inbound"];
  readonly keys: Inbound["keys"];
  /** Position up to which every event was delivered or skipped. The cursor is here, or just before the oldest unacknowledged event. */
  #takenUpTo: Position;
  /** The row's `outside` that this node knows; the maximum without a row. If the row has a lower one, a rollback removed events from outside the stream. */
  #storedOutside: Position;
  #connection: Connection | undefined;
  readonly #waiting: Waiting;
  readonly #rejections: Rejections;
  readonly #sender: DeliverySender;
  readonly #loops: ReadingParts;
  /** Set from {@link stop} until {@link restart}, which resolves it. The session must not be written meanwhile. */
  #stopped: Deferred<void> | undefined;

  constructor(parts: SessionParts, origin: SessionOrigin) {
    this.#parts = parts;
    this.id = origin.id;
    this.#epoch = origin.epoch;
    this.#takenUpTo = origin.taken;
    this.#storedOutside = origin.keeper === undefined ? lastPosition : origin.outside;
    this.#window = origin.underWay.window;
    this.inbound = origin.inbound.outcomes;
    this.keys = origin.inbound.keys;
    this.keys.epoch = origin.epoch;
    this.#keeper = origin.keeper;
    const { extensionPrefix, eventIds, clock, limits, logger, slices, filterOwners: owners } = parts;
    this.#filters = new FilterSet({ origin: origin.id, extensionPrefix, protocol: origin.protocol, owners });
    if (origin.isStopped) this.#stopped = createDeferred();
    this.#retained = new RetainedEvents(parts);
    for (const pending of origin.underWay.retained) this.#retained.resume(pending);
    this.#waiting = new Waiting(parts, `session ${origin.id}`);
    const [filters, window, waiting] = [this.#filters, this.#window, this.#waiting];
    const [isStored, onChanged] = [() => this.isStored, () => this.#changed()];
    this.#sender = new DeliverySender({ filters, window, eventIds, clock, isStored, onChanged });
    const [{ id }, { isSuspended }] = [origin, origin.underWay];
    this.#rejections = new Rejections({ id, window, waiting, isSuspended, clock, limits, logger });
    const onVanished = ({ ticket, qos }: InFlight) => (qos === 2 ? this.receive(ticket) : this.acknowledge(ticket));
    const filtersOf = (entry: InFlight): readonly SessionFilter[] => this.#filtersOf(entry);
    const repeater = new Repeater({ reads: parts, window, waiting, sender: this.#sender, filtersOf, onVanished });
    this.#loops = { window, waiting, slices, repeater, retained: this.#retained, rejections: this.#rejections };
    this.memberships = new Memberships(parts, {
      hasRoom: () => hasRoomForShares(this.#connection, this.#window.size + this.#shared.reserved),
      reserve: (event, sessionFilter) => this.#shared.reserve(event, sessionFilter),
      pass: (event, sessionFilter) => this.pass(event, [sessionFilter]),
    });
    this.put(origin.filters);
  }

  /** The current key. A rollback by another node changes the epoch in the row, together with the starts of the filters. */
  get key(): Pick<SessionState, "id" | "epoch"> {
    return { id: this.id, epoch: this.#epoch };
  }
  get state(): SessionState {
    const progress = { window: this.#window, retained: this.#retained.pending, isSuspended: this.isSuspended };
    const positions = { cursor: this.cursor, taken: this.#takenUpTo, outside: outsideOf(progress) };
    const { settled } = this.#shared;
    return { ...this.key, ...positions, inFlight: encodeProgress(progress), settled };
  }

  /** See {@link WritableSession.written}. */
  written({ settled = [], outside }: SessionState): void {
    this.#storedOutside = outside;
    this.#shared.written(settled);
  }

  get isStored(): boolean {
    return this.#keeper !== undefined;
  }
  get isStopped(): boolean {
    return this.#stopped !== undefined;
  }
  get isSuspended(): boolean {
    return this.#rejections.isSuspended;
  }
  get isStuck(): boolean {
    return this.#waiting.isFailing;
  }

  /** From now on, `keeper` stores the session's changes. Call it once the store has the session. */
  keepIn(keeper: Keeper): void {
    this.#keeper = keeper;
    this.#changed();
  }
  readonly only = undefined;
  includes(topic: TopicName): boolean {
    return this.#filters.includes(topic) || this.#window.includes(topic);
  }

  /**
   * Connects a peer, which first gets the unacknowledged events again. Call it only while no peer is connected. While the index rolls back, the peer gets
   * nothing before {@link restart}.
   */
  connect(peer: Peer, windowMax: number): void {
    this.#rejections.resume();
    this.#filters.list();
    const [onFailed, onSent] = [(error: unknown): void => this.#fail(error, peer), () => this.wake()];
    const outgoing = new Outgoing({ ...this.#loops, peer, written: () => this.#written(), onSent, onFailed });
    this.#connection = createConnection({ peer, windowMax, outgoing }, this.#window, this.state);
    for (const ticket of this.#connection.held) peer.release(ticket);
    this.#loops.repeater.giveUpDenied(); // After the releases: if it gives up an event of QoS 2, the release must wait until that is stored.
    if (!this.isStopped) this.#read(this.#connection);
  }

  /** Disconnects the peer. Events in flight stay, but shares take back the events that other members may get. */
  disconnect(): void {
    const connection = this.#connection;
    if (connection === undefined) return;
    void this.#endReading(connection);
    connection.outgoing.close();
    this.#connection = undefined;
    this.#filters.unlist();
    this.#rejections.clear();
    void this.memberships.leaveAll();
  }

  /** See {@link Readers.stop}. The connection stays. */
  async stop(): Promise<void> {
    this.#stopped ??= createDeferred();
    if (this.#connection !== undefined) await this.#endReading(this.#connection);
  }

  /**
   * Rolls the session back to `keptUpTo`, or only its filters if it is stored. Call it in the turn in which a rollback ends: later, new events may have the
   * positions of removed ones.
   */
  cutBack(keptUpTo: Position): void {
    if (!this.isStored) this.#rollBack({ taken: keptUpTo, outside: keptUpTo });
    this.#filters.rollBack(keptUpTo); // A SUBSCRIBE may write the starts before the row is read.
  }

  /** See {@link Readers.restart}. Does not repeat events that the peer has and that are still on the chain. If nodes share the store, pass the row. */
  restart(row?: SessionWithFilters): void {
    const connection = this.#connection;
    if (connection !== undefined) void this.#endReading(connection);
    if (row === undefined) this.#rollBackToIndex();
    else if (this.isStored) this.#rollBack(row.session); // cutBack has rolled back sessions that are not stored.
    if (row !== undefined) this.adopt(row);
    this.#stopped?.resolve();
    this.#stopped = undefined;
    this.#changed();
  }

  /** Reads on. Call it after {@link restart}, which does not read because that takes longer than the rest of a restart. */
  readOn(): void {
    const connection = this.#connection;
    if (connection !== undefined && connection.reading === undefined && !this.isStopped) this.#read(connection);
  }

  /** Continues under the row's epoch, with its filters. The row's progress may be older than the session's. */
  adopt({ session, filters }: SessionWithFilters): void {
    this.#epoch = session.epoch;
    this.keys.epoch = session.epoch;
    this.#changed();
    const { areStored } = this.#filters;
    if (!areStored && filters.length === 0) return; // The row lacks the session's filters.
    const texts = new Set(filters.map(({ filter }) => filter));
    this.unsubscribe(this.#filters.texts.filter((text) => !texts.has(text)));
    // If they are not stored, the row's filters come from a write without an answer, and the node or the client repeats that write.
    if (areStored) this.put(filters);
  }

  /** Adds filters, or replaces those of the same text. Returns the position after which the session's feed applies the new ones. */
  put(filters: readonly StoredFilter[]): Position {
    const feed = this.#connection?.reading?.feed;
    for (const filter of filters) {
      if (isShared(filter.filter)) this.memberships.join(filter);
      else if (this.#filters.find(filter.filter) === undefined) feed?.addFilter(filter.filter);
      this.#filters.put(filter);
    }
    this.#filters.areStored = this.isStored;
    return feed?.end ?? this.#takenUpTo;
  }

  /** Delivers to a filter the events that its topics retain, up to a position. */
  giveRetained(filter: TopicFilter, upTo: Position): void {
    this.#retained.add(filter, upTo);
    this.#changed();
    this.wake();
  }

  /** Removes filters, and ignores those that the session does not have. */
  unsubscribe(filters: readonly TopicFilter[]): void {
    for (const filter of filters) {
      if (!this.#filters.remove(filter)) continue;
      this.#retained.remove(filter);
      if (isShared(filter)) this.memberships.leave(filter);
      else this.#connection?.reading?.feed.removeFilter(filter);
    }
  }

  /** A read-only view of the filters. */
  get filterSet(): Readonly<Pick<FilterSet, "all" | "areStored" | "find" | "notifiedAt" | "version">> {
    return this.#filters;
  }

  hasFilter(filter: TopicFilter): boolean {
    return this.#filters.find(filter) !== undefined;
  }
  get filterCount(): number {
    return this.#filters.size;
  }

  /** See {@link FilterSet.originFor}. */
  originFor(topic: string): string | undefined {
    return this.#filters.originFor(topic);
  }

  acknowledge(ticket: Ticket): void {
    const isKnown = this.#window.acknowledge(ticket);
    this.#connection?.held.delete(ticket);
    this.#shared.acknowledged(ticket);
    if (!isKnown) return;
    this.#changed();
    this.wake();
  }

  reject(ticket: Ticket): void {
    if (this.#connection === undefined || !this.#rejections.add(this.#connection, ticket)) return;
    this.#changed();
    this.wake();
  }

  /** Records that the peer has an event of QoS 2. Returns whether the ticket was in flight. The release follows once the record is stored. */
  receive(ticket: Ticket): boolean {
    if (!this.#window.receive(ticket)) return false;
    this.#connection?.held.add(ticket);
    if (!this.isStored) this.#connection?.peer.release(ticket);
    else this.#connection?.outgoing.release(ticket);
    return true;
  }

  /** Delivers an event that is never committed, under these filters, if the peer has room. */
  pass(event: Event, filters: readonly SessionFilter[]): void {
    if (filters.length > 0) this.#connection?.peer.pass?.(this.#sender.passing(event, filters));
  }

  /** Continues deliveries. Call it when the peer may have room again. */
  wake(): void {
    this.#waiting.wake();
    this.#connection?.reading?.wake();
    this.memberships.wake();
  }

  #rollBackToIndex(): void {
    const end = indexedUpTo(this.#parts);
    this.#rollBack({ taken: end, outside: end });
    this.#filters.rollBack(end);
  }

  /** Pass the positions of the session's row, which each rollback of the store moves back; without a row, those of the index. */
  #rollBack({ taken: to, outside }: Pick<SessionState, "taken" | "outside">): void {
    const { generation } = this.#parts.progress;
    const outsideTo = outside < this.#storedOutside ? outside : lastPosition;
    if (this.isStored) this.#storedOutside = outside;
    rollBackDeliveries(this.#window, this.#connection, { to, outsideTo, generation });
    this.#retained.rollBack(outsideTo);
    this.#shared.rollBack(outsideTo);
    this.#takenUpTo = minOf(this.#takenUpTo, to);
  }

  #read(connection: Connection): void {
    const feed = this.#parts.createFeed({
      filters: this.#filters.ownTexts,
      interest: this,
      after: connection.readUpTo,
      onRead: () => this.#waiting.recovered(stuck.live),
      onPassed: (event, filters) => {
        if (connection.reading?.feed === feed) this.pass(event, this.#filters.wanting(event, filters)); // An ended feed closes later.
      },
    });
    const receiver = {
      give: (event: Event) => this.#give(event, connection),
      giveRetained: (retained: Retained) => this.#giveRetained(retained, connection),
      failed: (error: unknown) => this.#fail(error, connection.peer),
    };
    connection.reading = new ReadingLoops(connection, feed, { parts: this.#loops, receiver });
    this.memberships.wake();
  }

  #fail(error: unknown, peer: Peer): void {
    this.#parts.logger.error("delivery to a session failed", { sessionId: this.id, error });
    peer.ended("failed");
  }

  async #endReading(connection: Connection): Promise<void> {
    const { reading } = connection;
    if (reading === undefined) return;
    connection.reading = undefined;
    const ended = reading.end();
    // The next connection need not read the events again that no filter matches.
    connection.readUpTo = reading.feed.position;
    if (connection.readUpTo > connection.repeatedUpTo) this.#takenUpTo = maxOf(this.#takenUpTo, connection.readUpTo);
    await ended;
  }

  #filtersOf({ share, topic }: InFlight): readonly SessionFilter[] {
    const sessionFilter = share && this.memberships.find(share);
    return sessionFilter ? [sessionFilter] : this.#filters.allOf(topic);
  }

  #giveRetained(retained: Retained, connection: Connection): void {
    const { event, filter } = retained;
    this.#retained.pass(retained);
    this.#changed();
    const current = this.#filters.find(filter);
    if (current === undefined || (current.isNoLocal && this.#filters.isOwn(event))) return;
    this.#sender.first(event, connection, { filters: [current], isRetained: true });
  }

  #give(event: Event, connection: Connection): void {
    const filters = this.#filters.wanting(event);
    const { repeater } = this.#loops;
    repeater.giveUpPassed(connection, before(event.position));
    if (event.position <= connection.repeatedUpTo) {
      repeater.giveOfStream(event, connection, filters);
      return;
    }
    this.#takenUpTo = event.position;
    this.#changed();
    if (filters.length > 0) this.#sender.first(event, connection, { filters });
  }

  /** The session has acknowledged, or does not get, every event up to this position. */
  get cursor(): Position {
    const { lowest } = this.#window;
    return lowest === undefined ? this.#takenUpTo : minOf(before(lowest), this.#takenUpTo);
  }

  #changed(): void {
    if (!this.isStopped) this.#keeper?.note(this);
  }

  #written(): Promise<void> | undefined {
    if (this.#stopped !== undefined) return this.#stopped.promise.then(() => this.#written());
    return this.#keeper?.written(this);
  }
}
