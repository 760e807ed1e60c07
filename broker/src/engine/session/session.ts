import { type DeliveryWindow, type InFlight, isBeside, type Ticket } from "../../domain/delivery-window.ts";
import type { Event } from "../../domain/event.ts";
import type { Interest } from "../../domain/interest.ts";
import { before, maxOf, minOf, type Position } from "../../domain/position.ts";
import type { SessionFilter } from "../../domain/session-filter.ts";
import { isShared } from "../../domain/shared-filter.ts";
import type { TopicFilter } from "../../domain/topic-filter.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import { createDeferred, type Deferred } from "../../lib/deferred.ts";
import type { SessionId, SessionState, SessionWithFilters, StoredFilter } from "../../ports/session-store.ts";
import type { ConnectedSession } from "../broker.ts";
import type { Feed } from "../dispatch/feed.ts";
import { indexedUpTo } from "../index-progress.ts";
import { type Connection, hasRoom, hasRoomBeside, rollBackConnection } from "./connection.ts";
import { FilterSet } from "./filter-set.ts";
import { Memberships } from "./memberships.ts";
import { Outgoing } from "./outgoing.ts";
import type { Delivery, Peer } from "./peer.ts";
import { findEvent, type Retained, RetainedEvents } from "./retained.ts";
import { encodeUnderWay } from "./session-codec.ts";
import type { Keeper, SessionOrigin, SessionParts } from "./session-parts.ts";
import type { Written } from "./session-writer.ts";
import { Waiting } from "./waiting.ts";

/**
 * What one client keeps across its connections: filters, how far it is, and what it has not acknowledged. While it is connected, a loop gives its
 * peer one event after the other, as long as the peer has credit and room.
 */
export class Session implements ConnectedSession, Interest, Written {
  readonly id: SessionId;
  readonly #parts: SessionParts;
  readonly #filters: FilterSet;
  readonly #window: DeliveryWindow;
  readonly #keeper: Keeper | undefined;
  #epoch: number;
  /** What filters are to get of what topics retain. */
  readonly #retained: RetainedEvents;
  readonly #memberships: Memberships;
  /** Publishes of QoS 2 that the client has not released, by packet identifier, with what becomes of them. */
  readonly inbound: ConnectedSession["inbound"];
  /** Every event up to here was given or passed, so the cursor is here or just before the oldest that is not acknowledged. */
  #takenUpTo: Position;
  #connection: Connection | undefined;
  readonly #waiting: Waiting;

  /** From {@link stop} until {@link restart}, which resolves it: nothing of the session may be written meanwhile. */
  #stopped: Deferred<void> | undefined;

  constructor(parts: SessionParts, origin: SessionOrigin) {
    this.#parts = parts;
    this.id = origin.id;
    this.#epoch = origin.epoch;
    this.#takenUpTo = origin.taken;
    this.#window = origin.underWay.window;
    this.inbound = origin.inbound;
    this.#keeper = origin.keeper;
    this.#filters = new FilterSet({ origin: origin.id, extensionPrefix: parts.extensionPrefix });
    if (origin.isStopped) this.#stopped = createDeferred();
    this.#retained = new RetainedEvents(parts);
    for (const pending of origin.underWay.retained) this.#retained.resume(pending);
    this.#waiting = new Waiting(parts);
    this.#memberships = new Memberships(parts, {
      hasRoom: () => hasRoomBeside(this.#connection, this.#window),
      give: (event, order) => this.#giveShared(event, order),
    });
    this.put(origin.filters);
  }

  get epoch(): number {
    return this.#epoch;
  }
  get state(): SessionState {
    const inFlight = encodeUnderWay({ window: this.#window, retained: this.#retained.pending });
    return { id: this.id, epoch: this.#epoch, cursor: this.#cursor, taken: this.#takenUpTo, inFlight };
  }

  get isStored(): boolean {
    return this.#keeper !== undefined;
  }
  get isStopped(): boolean {
    return this.#stopped !== undefined;
  }

  get isMember(): boolean {
    return this.#memberships.size > 0;
  }

  readonly only = undefined;

  includes(topic: TopicName): boolean {
    if (this.#filters.includes(topic)) return true;
    for (const entry of this.#window.entries) if (entry.topic === topic) return true;
    return false;
  }

  /**
   * Gives the session to a peer, which first gets again what it has not acknowledged. To be called while there is none. While the index
   * rolls back, it is given nothing before {@link restart}.
   */
  connect(peer: Peer, windowMax: number): void {
    const received = [...this.#window.entries].filter(({ state }) => state === "received").map(({ ticket }) => ticket);
    this.#connection = {
      peer,
      windowMax,
      reading: undefined,
      readUpTo: this.#cursor,
      outgoing: new Outgoing({
        written: () => this.#written(),
        onSent: () => this.wake(),
        onFailed: (error) => this.#fail(error, peer),
      }),
      held: new Set(received),
      repeatedUpTo: this.#takenUpTo,
      repeats: new Map(this.#inFlight(false).map((entry) => [entry.position, entry])),
    };
    for (const ticket of received) peer.release(ticket);
    if (!this.isStopped) this.#read(this.#connection);
  }

  /** Takes the session from its peer. What is in flight stays. */
  disconnect(): void {
    const connection = this.#connection;
    if (connection === undefined) return;
    void this.#endReading(connection);
    connection.outgoing.close();
    this.#connection = undefined;
    this.#memberships.handBack(this.#window);
  }

  /** See {@link Readers.stop}. The connection stays. */
  async stop(): Promise<void> {
    this.#stopped ??= createDeferred();
    if (this.#connection !== undefined) await this.#endReading(this.#connection);
  }

  /** See {@link Readers.restart}. The peer gets nothing again that it has and that is still on the chain. If nodes share the store, give the row. */
  restart(row?: SessionWithFilters): void {
    const connection = this.#connection;
    if (connection !== undefined) void this.#endReading(connection);
    if (row !== undefined) this.#adopt(row);
    this.#rollBack(minOf(row?.session.taken ?? indexedUpTo(this.#parts), indexedUpTo(this.#parts)));
    this.#stopped?.resolve();
    this.#stopped = undefined;
    this.#changed();
    if (connection !== undefined) this.#read(connection);
  }

  #adopt({ session, filters }: SessionWithFilters): void {
    this.#epoch = session.epoch;
    const texts = new Set(filters.map(({ filter }) => filter));
    this.unsubscribe(this.#filters.texts.filter((text) => !texts.has(text)));
    this.put(filters);
  }

  /** Adds filters, or replaces those of the same text. */
  put(filters: readonly StoredFilter[]): void {
    for (const filter of filters) {
      if (isShared(filter.filter)) this.#memberships.join(filter);
      else if (this.#filters.find(filter.filter) === undefined)
        this.#connection?.reading?.feed.addFilter(filter.filter);
      this.#filters.put(filter);
    }
  }

  /** The filter gets what topics retain by now. */
  giveRetained(filter: TopicFilter): void {
    this.#retained.add(filter, indexedUpTo(this.#parts));
    this.#changed();
    this.wake();
  }

  /** Removes those of the filters that there are. */
  unsubscribe(filters: readonly TopicFilter[]): void {
    for (const filter of filters) {
      if (!this.#filters.remove(filter)) continue;
      this.#retained.remove(filter);
      if (isShared(filter)) this.#memberships.leave(filter);
      else this.#connection?.reading?.feed.removeFilter(filter);
    }
  }

  findFilter(filter: TopicFilter): StoredFilter | undefined {
    return this.#filters.find(filter);
  }

  hasFilter(filter: TopicFilter): boolean {
    return this.#filters.find(filter) !== undefined;
  }

  get filters(): readonly StoredFilter[] {
    return this.#filters.all;
  }

  get filterCount(): number {
    return this.#filters.size;
  }

  /** What an event published to the topic has to name as its origin, so that this session does not get it; undefined where it may. */
  originFor(topic: string): string | undefined {
    return this.#filters.originFor(topic);
  }

  /** Answers whether the ticket was in flight. */
  acknowledge(ticket: Ticket): boolean {
    const isKnown = this.#window.acknowledge(ticket);
    this.#connection?.held.delete(ticket);
    if (!isKnown) return false;
    this.#changed();
    this.wake();
    return true;
  }

  /** The peer has an event of QoS 2. Answers whether the ticket was in flight; its release follows once that is written down. */
  receive(ticket: Ticket): boolean {
    const isKnown = this.#window.receive(ticket);
    const connection = this.#connection;
    if (connection === undefined || !isKnown) return isKnown;
    if (!this.isStored) connection.peer.release(ticket);
    else
      void this.#written().then(() => (this.#connection === connection ? connection.peer.release(ticket) : undefined));
    return isKnown;
  }

  /** The peer may take another event. */
  wake(): void {
    this.#waiting.wake();
    this.#memberships.wake();
  }

  /** Ends the session: nothing of it is kept. To be called once it is disconnected. */
  remove(): void {
    this.#memberships.leaveAll();
  }

  #rollBack(to: Position): void {
    this.#window.rollBack(to, indexedUpTo(this.#parts));
    this.#retained.rollBack(to);
    this.#takenUpTo = minOf(this.#takenUpTo, to);
    this.#filters.rollBack(to);
    if (this.#connection !== undefined) rollBackConnection(this.#connection, to, this.#window);
  }

  #read(connection: Connection): void {
    const feed = this.#parts.createFeed({
      filters: this.#filters.ownTexts,
      interest: this,
      after: connection.readUpTo,
    });
    const ending = new AbortController();
    const { signal } = ending;
    const failed = (error: unknown): void => this.#fail(error, connection.peer);
    const loops = [this.#run(connection, { feed, signal }), this.#runRetained(connection, signal)];
    const ended = Promise.allSettled(loops.map((loop) => loop.catch(failed)));
    connection.reading = { feed, ending, ended };
    this.#memberships.wake();
  }

  #fail(error: unknown, peer: Peer): void {
    this.#parts.logger.error("delivery to a session failed", { error });
    peer.ended("failed");
  }

  async #endReading(connection: Connection): Promise<void> {
    const { reading } = connection;
    if (reading === undefined) return;
    connection.reading = undefined;
    reading.ending.abort();
    reading.feed.close();
    // Events that no filter matches need not be read again by the next connection.
    connection.readUpTo = reading.feed.position;
    if (connection.readUpTo > connection.repeatedUpTo) this.#takenUpTo = maxOf(this.#takenUpTo, connection.readUpTo);
    this.wake();
    await reading.ended;
  }

  async #run(
    connection: Connection,
    { feed, signal }: { readonly feed: Feed; readonly signal: AbortSignal },
  ): Promise<void> {
    while (!signal.aborted) {
      await this.#waiting.forRead(signal, () => feed.more(signal));
      // What topics retain comes first: it is older.
      while (!signal.aborted && (!this.#retained.isEmpty || !hasRoom(connection))) await this.#waiting.woken();
      const event = feed.peek();
      if (event === undefined || signal.aborted) continue;
      feed.advance();
      this.#give(event, connection);
      await this.#parts.slices.pause();
    }
  }

  /** Gives what an earlier connection had beside the stream, and then what topics retain, each time that a filter is to get it. */
  async #runRetained(connection: Connection, signal: AbortSignal): Promise<void> {
    for (const entry of this.#inFlight(true)) {
      if (!connection.held.has(entry.ticket)) await this.#repeatBeside(entry, { connection, signal });
    }
    while (!signal.aborted) {
      while (!signal.aborted && (this.#retained.isEmpty || !hasRoom(connection))) await this.#waiting.woken();
      const retained = await this.#waiting.forRead(signal, () => this.#retained.next(signal));
      while (!signal.aborted && !hasRoom(connection)) await this.#waiting.woken();
      if (signal.aborted) return;
      if (retained !== undefined) this.#giveRetained(retained, connection);
      if (this.#retained.isEmpty) this.wake();
      await this.#parts.slices.pause();
    }
  }

  async #repeatBeside(
    entry: InFlight,
    { connection, signal }: { readonly connection: Connection; readonly signal: AbortSignal },
  ): Promise<void> {
    const { ticket, qos, isRetained = false } = entry;
    const event = await this.#waiting.forRead(signal, () => findEvent(this.#parts, entry));
    while (!signal.aborted && !hasRoom(connection)) await this.#waiting.woken();
    if (signal.aborted || this.#window.find(ticket) === undefined) return;
    if (event === undefined) {
      this.acknowledge(ticket); // the chain took it back
      return;
    }
    connection.held.add(ticket);
    const order = entry.share && this.#memberships.find(entry.share);
    const filters = order ? [order] : this.#filters.allOf(event.topic);
    this.#deliver(connection, { event, qos, ticket, isRepeated: true, isRetained, filters });
  }

  #giveRetained(retained: Retained, connection: Connection): void {
    const { event, filter } = retained;
    this.#retained.pass(retained);
    this.#changed();
    const standing = this.#filters.find(filter);
    if (standing === undefined || (standing.isNoLocal && this.#filters.isOwn(event))) return;
    this.#deliverFirst(event, connection, { filters: [standing], isRetained: true });
  }

  #giveShared(event: Event, order: SessionFilter): void {
    if (this.#connection === undefined) return;
    this.#deliverFirst(event, this.#connection, { filters: [order], share: order.filter });
  }

  #deliverFirst(
    event: Event,
    connection: Connection,
    { filters, ...how }: Pick<InFlight, "isRetained" | "share"> & Pick<Delivery, "filters">,
  ): void {
    const qos = this.#filters.qosOf(event, filters);
    const { position, topic } = event;
    const ticket = qos === 0 ? undefined : this.#window.give({ position, topic, qos, ...how });
    if (ticket !== undefined) connection.held.add(ticket);
    this.#changed();
    this.#deliver(connection, { event, qos, ticket, isRepeated: false, isRetained: how.isRetained === true, filters });
  }

  /** A ticket of QoS 2 is written down before the peer hears of it: the peer leaves out a repeat by its ticket alone. */
  #deliver({ peer, outgoing }: Connection, delivery: Omit<Delivery, "eventId">): void {
    const eventId = this.#parts.eventIds.of(delivery.event);
    const afterWrite = this.isStored && delivery.qos === 2 && !delivery.isRepeated;
    outgoing.send(() => peer.deliver({ ...delivery, eventId }), { afterWrite });
  }

  #inFlight(beside: boolean): readonly InFlight[] {
    return [...this.#window.entries].filter((entry) => isBeside(entry) === beside);
  }

  #give(event: Event, connection: Connection): void {
    if (event.position <= connection.repeatedUpTo) this.#repeat(event, connection);
    else this.#giveNew(event, connection);
  }

  #repeat(event: Event, connection: Connection): void {
    const { held, repeats } = connection;
    const entry = repeats.get(event.position);
    if (entry === undefined || held.has(entry.ticket) || this.#window.find(entry.ticket)?.state !== "given") return;
    const { ticket, qos } = entry;
    held.add(ticket);
    this.#deliver(connection, { event, qos, ticket, isRepeated: true, filters: this.#filters.wanting(event) });
  }

  #giveNew(event: Event, connection: Connection): void {
    this.#takenUpTo = event.position;
    this.#changed();
    const filters = this.#filters.wanting(event);
    if (filters.length > 0) this.#deliverFirst(event, connection, { filters });
  }

  /** Every event up to here is acknowledged, or was not for the session. */
  get #cursor(): Position {
    const { lowest } = this.#window;
    return lowest === undefined ? this.#takenUpTo : minOf(before(lowest), this.#takenUpTo);
  }

  #changed(): void {
    if (!this.isStopped) this.#keeper?.note(this);
  }

  async #written(): Promise<void> {
    while (this.#stopped !== undefined) await this.#stopped.promise;
    await this.#keeper?.written(this);
  }
}
