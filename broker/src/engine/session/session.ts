import { DeliveryWindow, type InFlight, isBeside, type Ticket } from "../../domain/delivery-window.ts";
import type { Event } from "../../domain/event.ts";
import type { Interest } from "../../domain/interest.ts";
import { before, endOfBlock, maxOf, minOf, type Position } from "../../domain/position.ts";
import { originOf, publishedQos, type QoS, type SessionFilter } from "../../domain/session-filter.ts";
import { isShared } from "../../domain/shared-filter.ts";
import { matchesFilter, type TopicFilter } from "../../domain/topic-filter.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { Randomness } from "../../ports/randomness.ts";
import type { ConnectedSession, PublishOutcome } from "../broker.ts";
import type { Feed, FeedOrder } from "../dispatch/feed.ts";
import type { EventIds } from "../event-ids.ts";
import type { IndexProgress } from "../index-progress.ts";
import { type Connection, hasRoom } from "./connection.ts";
import type { Delivery, Peer } from "./peer.ts";
import { Memberships, type MembershipsParts } from "./memberships.ts";
import { findEvent, type Retained, RetainedEvents, type RetainedParts } from "./retained.ts";
import { Waiting, type WaitingParts } from "./waiting.ts";

export interface SessionParts extends RetainedParts, WaitingParts, MembershipsParts {
  readonly progress: IndexProgress;
  readonly eventIds: EventIds;
  readonly randomness: Randomness;
  readonly createFeed: (order: FeedOrder) => Feed;
}

/** What a session and a share of one group work with. */
export type ReaderParts = Omit<SessionParts, "shares">;

interface Standing extends SessionFilter {
  /** Only events after this position: those since the filter was added. */
  readonly after: Position;
}

/**
 * What one client keeps across its connections: filters, how far it is, and what it has not acknowledged. While it is connected, a loop gives its
 * peer one event after the other, as long as the peer has credit and room.
 */
export class Session implements ConnectedSession, Interest {
  readonly #parts: SessionParts;
  readonly #filters = new Map<TopicFilter, Standing>();
  readonly #window = new DeliveryWindow();
  /** What filters are to get of what topics retain. */
  readonly #retained: RetainedEvents;
  readonly #memberships: Memberships;
  /** Publishes of QoS 2 that the client has not released, by packet identifier, with what becomes of them. */
  readonly inbound = new Map<number, Promise<PublishOutcome>>();
  /** Every event up to here was given or passed, so the cursor is here or just before the oldest that is not acknowledged. */
  #takenUpTo: Position;
  #connection: Connection | undefined;
  readonly #waiting: Waiting;

  /** Between {@link stop} and {@link restart}. */
  #isStopped: boolean;

  /** Marks what this session publishes, where its own filters leave that out. */
  readonly id: string;

  constructor(parts: SessionParts, options: { readonly isStopped: boolean }) {
    this.#parts = parts;
    this.#isStopped = options.isStopped;
    this.id = parts.randomness.uuid();
    this.#retained = new RetainedEvents(parts);
    this.#waiting = new Waiting(parts);
    this.#memberships = new Memberships(parts, {
      hasRoom: () => this.#connection?.reading !== undefined && hasRoom(this.#connection),
      give: (event, order) => this.#giveShared(event, order),
    });
    this.#takenUpTo = this.#indexedUpTo();
  }

  readonly only = undefined;

  includes(topic: TopicName): boolean {
    for (const filter of this.#filters.keys()) if (matchesFilter(filter, topic)) return true;
    for (const entry of this.#window.entries) if (entry.topic === topic) return true;
    return false;
  }

  get isConnected(): boolean {
    return this.#connection !== undefined;
  }

  /** Events given and not acknowledged. */
  get inFlightCount(): number {
    return this.#window.size;
  }

  /**
   * Gives the session to a peer, which first gets again what it has not acknowledged. To be called while there is none. While the index
   * rolls back, it is given nothing before {@link restart}.
   */
  connect(peer: Peer, windowMax: number): void {
    const { lowest } = this.#window;
    const received = [...this.#window.entries].filter(({ state }) => state === "received").map(({ ticket }) => ticket);
    this.#connection = {
      peer,
      windowMax,
      reading: undefined,
      readUpTo: lowest === undefined ? this.#takenUpTo : before(lowest),
      held: new Set(received),
      repeatedUpTo: this.#takenUpTo,
      repeats: new Map(this.#inFlight(false).map((entry) => [entry.position, entry])),
    };
    for (const ticket of received) peer.release(ticket);
    if (!this.#isStopped) this.#read(this.#connection);
  }

  /** Takes the session from its peer. What is in flight stays. */
  disconnect(): void {
    const connection = this.#connection;
    if (connection === undefined) return;
    void this.#endReading(connection);
    this.#connection = undefined;
    this.#memberships.handBack(this.#window);
  }

  /** See {@link Readers.stop}. The connection stays. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    if (this.#connection !== undefined) await this.#endReading(this.#connection);
  }

  /** See {@link Readers.restart}. The peer is given no event again that it has and that is still on the chain. */
  restart(): void {
    this.#isStopped = false;
    const connection = this.#connection;
    this.#rollBack(this.#indexedUpTo());
    if (connection !== undefined) this.#read(connection);
  }

  /** Adds a filter, from the newest indexed event on, or replaces the one of the same text. Answers whether it is new. */
  subscribe(order: SessionFilter): boolean {
    if (isShared(order.filter)) return this.#memberships.join(order);
    const known = this.#filters.get(order.filter);
    const indexedUpTo = this.#indexedUpTo();
    this.#filters.set(order.filter, { ...order, after: known?.after ?? indexedUpTo });
    if (order.retained === "always" || (order.retained === "if-new" && known === undefined)) {
      this.#retained.add(order.filter, indexedUpTo);
      this.wake();
    }
    if (known === undefined) this.#connection?.reading?.feed.addFilter(order.filter);
    return known === undefined;
  }

  /** Answers whether there was such a filter. */
  unsubscribe(filter: TopicFilter): boolean {
    if (!this.#filters.delete(filter)) return this.#memberships.leave(filter);
    this.#retained.remove(filter);
    this.#connection?.reading?.feed.removeFilter(filter);
    return true;
  }

  hasFilter(filter: TopicFilter): boolean {
    return this.#filters.has(filter) || this.#memberships.find(filter) !== undefined;
  }

  get filterCount(): number {
    return this.#filters.size + this.#memberships.size;
  }

  /** What an event published to the topic has to name as its origin, so that this session does not get it; undefined where it may. */
  originFor(topic: string): string | undefined {
    const name = topic as TopicName; // one that is none matches no filter that matters
    for (const { filter, isNoLocal } of this.#filters.values()) {
      if (isNoLocal && matchesFilter(filter, name)) return this.id;
    }
    return undefined;
  }

  /** Answers whether the ticket was in flight. */
  acknowledge(ticket: Ticket): boolean {
    const isKnown = this.#window.acknowledge(ticket);
    this.#connection?.held.delete(ticket);
    if (isKnown) this.wake();
    return isKnown;
  }

  /** The peer has an event of QoS 2, and still is to acknowledge its release. Answers whether the ticket was in flight. */
  receive(ticket: Ticket): boolean {
    const isKnown = this.#window.receive(ticket);
    if (isKnown) this.#connection?.peer.release(ticket);
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
    this.#window.rollBack(to);
    this.#retained.rollBack(to);
    this.#takenUpTo = minOf(this.#takenUpTo, to);
    for (const [filter, standing] of this.#filters) {
      this.#filters.set(filter, { ...standing, after: minOf(standing.after, to) });
    }
    const connection = this.#connection;
    if (connection !== undefined) {
      connection.repeatedUpTo = minOf(connection.repeatedUpTo, to);
      connection.readUpTo = minOf(connection.readUpTo, to);
      for (const ticket of connection.held) if (this.#window.find(ticket) === undefined) connection.held.delete(ticket);
    }
  }

  #read(connection: Connection): void {
    const feed = this.#parts.createFeed({ filters: this.#filters.keys(), interest: this, after: connection.readUpTo });
    const ending = new AbortController();
    const { signal } = ending;
    const failed = (error: unknown): void => this.#fail(error, connection.peer);
    const loops = [this.#run(connection, { feed, signal }), this.#runRetained(connection, signal)];
    const ended = Promise.all(loops.map(async (loop) => loop.catch(failed)));
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
      const retained = await this.#waiting.forRead(signal, () => this.#retained.next());
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
    const filters = order
      ? [order]
      : [...this.#filters.values()].filter((one) => matchesFilter(one.filter, event.topic));
    this.#deliver(connection.peer, { event, qos, ticket, isRepeated: true, isRetained, filters });
  }

  #giveRetained(retained: Retained, connection: Connection): void {
    const { event, filter } = retained;
    this.#retained.pass(retained);
    const standing = this.#filters.get(filter);
    if (standing === undefined || (standing.isNoLocal && this.#isOwn(event))) return;
    this.#deliverFirst(event, connection, { filters: [standing], isRetained: true });
  }

  #giveShared(event: Event, order: SessionFilter): void {
    if (this.#connection === undefined) return;
    try {
      this.#deliverFirst(event, this.#connection, { filters: [order], share: order.filter });
    } catch (error) {
      this.#fail(error, this.#connection.peer);
    }
  }

  #deliverFirst(
    event: Event,
    { peer, held }: Connection,
    { filters, ...how }: Pick<InFlight, "isRetained" | "share"> & Pick<Delivery, "filters">,
  ): void {
    const qos = this.#qosOf(event, filters);
    const { position, topic } = event;
    const ticket = qos === 0 ? undefined : this.#window.give({ position, topic, qos, ...how });
    if (ticket !== undefined) held.add(ticket);
    this.#deliver(peer, { event, qos, ticket, isRepeated: false, isRetained: how.isRetained === true, filters });
  }

  #deliver(peer: Peer, delivery: Omit<Delivery, "eventId">): void {
    peer.deliver({ ...delivery, eventId: this.#parts.eventIds.of(delivery.event) });
  }

  #inFlight(beside: boolean): readonly InFlight[] {
    return [...this.#window.entries].filter((entry) => isBeside(entry) === beside);
  }

  #give(event: Event, connection: Connection): void {
    if (event.position <= connection.repeatedUpTo) this.#repeat(event, connection);
    else this.#giveNew(event, connection);
  }

  #repeat(event: Event, { peer, held, repeats }: Connection): void {
    const entry = repeats.get(event.position);
    if (entry === undefined || this.#window.find(entry.ticket)?.state !== "given") return;
    const { ticket, qos } = entry;
    held.add(ticket);
    this.#deliver(peer, { event, qos, ticket, isRepeated: true, filters: this.#filtersOf(event) });
  }

  #giveNew(event: Event, connection: Connection): void {
    this.#takenUpTo = event.position;
    const filters = this.#filtersOf(event);
    if (filters.length > 0) this.#deliverFirst(event, connection, { filters });
  }

  #filtersOf(event: Event): readonly SessionFilter[] {
    const isOwn = this.#isOwn(event);
    const found: SessionFilter[] = [];
    for (const standing of this.#filters.values()) {
      const isWanted = event.position > standing.after && !(isOwn && standing.isNoLocal);
      if (isWanted && matchesFilter(standing.filter, event.topic)) found.push(standing);
    }
    return found;
  }

  #isOwn(event: Event): boolean {
    return originOf(event, this.#parts.extensionPrefix) === this.id;
  }

  #qosOf(event: Event, filters: readonly SessionFilter[]): QoS {
    const granted = Math.max(...filters.map(({ qos }) => qos));
    return Math.min(granted, publishedQos(event, this.#parts.extensionPrefix)) as QoS; // both are
  }

  #indexedUpTo(): Position {
    return endOfBlock(Math.max(0, this.#parts.progress.blockNumber));
  }
}
