import { BrokerError, quote } from "@stele/wire";
import { parseSubscriptionId, type SubscriptionId } from "../../domain/subscription.ts";
import { sessionFiltersMax } from "../../domain/session-filter.ts";
import { parseOwnFilter } from "../../domain/shared-filter.ts";
import type { TopicFilter } from "../../domain/topic-filter.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { Pauses } from "../../lib/time-slices.ts";
import type { Randomness } from "../../ports/randomness.ts";
import type { SessionWithFilters, StoredFilter } from "../../ports/session-store.ts";
import type { Store } from "../../ports/store.ts";
import type { Access } from "../access/access.ts";
import { type Caller, nobody } from "../access/caller.ts";
import type { AttachRequest, StreamRequest } from "../broker.ts";
import type { Group } from "../group.ts";
import type { Session } from "./session.ts";
import type { FindStart } from "./session-parts.ts";
import { checkEach } from "./session-slices.ts";
import { StoreTurns } from "./stored/store-turns.ts";

export interface StreamsParts {
  readonly store: Pick<Store, "sessions" | "findSubscription">;
  readonly findStart: FindStart;
  readonly randomness: Randomness;
  readonly access: Access;
  readonly slices: Pauses;
}

/** A checked request for a stream. */
export interface Stream {
  readonly id: SubscriptionId;
  readonly filters: readonly TopicFilter[];
  readonly acknowledges: boolean;
  /** The owner of the session; undefined if the caller becomes its owner. */
  readonly ownedBy: string | undefined;
  /** Undefined if the session already exists: it continues from its cursor. */
  readonly offset: string | undefined;
  readonly findStart: StreamRequest["findStart"];
  /** Whether the offset may name an event of a topic. */
  readonly mayFind: (topic: TopicName) => boolean;
}

interface CheckedStream {
  readonly group: Group;
  readonly caller: Caller;
  /** The connection that has the session now. */
  readonly held: { readonly ownedBy: string } | undefined;
}

/** Streams: sessions that are one subscription each, begin at a given event and never change their filters. */
export class Streams {
  readonly #parts: StreamsParts;
  readonly #turns = new StoreTurns();

  constructor(parts: StreamsParts) {
    this.#parts = parts;
  }

  /**
   * @throws BrokerError 100102, 100103, 100106, 100109 for a filter; 200001 for too many filters; 100503, 100505 for the identifier; 100701, 200207;
   *   100702 without the right to subscribe, or if another principal owns the session; 100108 if the identifier belongs to a callback subscription, to another
   *   session, or to a session with other filters.
   */
  async check(
    { group, caller, held }: CheckedStream,
    { protocol, key }: AttachRequest,
    { filters: texts, acknowledges, offset, findStart }: StreamRequest,
  ): Promise<Stream> {
    const filters = [...new Set(texts.map(parseOwnFilter))];
    if (filters.length === 0) throw new BrokerError("topicBlank");
    if (filters.length > sessionFiltersMax) {
      throw new BrokerError("parameterInvalid", { details: `${filters.length} filters, at most ${sessionFiltersMax}` });
    }
    const { access, slices } = this.#parts;
    await checkEach(filters, { caller, slices }, (topic) => {
      access.authorize(caller, "subscribe", { groupId: group.id, topic });
    });
    const id = access.parseSubscriptionId(caller, key);
    const found = await this.#turns.run(group.id, () => this.#findKnown(id), caller.signal);
    if (found === undefined) throw new BrokerError("busy", { details: "the connection has ended" });
    const { result: known } = found;
    if (known !== undefined) {
      const { session } = known;
      const isSame = session.protocol === protocol && session.key === key && session.groupId === group.id;
      access.checkOwner(caller, session.principal);
      if (!isSame)
        throw elsewhere(id, `the identifier belongs to a session of ${session.protocol} in group ${session.groupId}`);
      checkSame(id, known.filters, filters);
    }
    // A session that was created while access was off has no owner. The admin who continues it becomes its owner.
    const ownedBy = [known?.session.principal ?? held?.ownedBy].find((owner) => owner !== nobody);
    const mayFind = access.finderFor(caller);
    const start = { offset: known === undefined ? offset : undefined, findStart, mayFind };
    return { id, filters, acknowledges, ownedBy, ...start };
  }

  /** The session that has the identifier. @throws BrokerError 100108 if a callback subscription has it. */
  async #findKnown(id: SubscriptionId): Promise<SessionWithFilters | undefined> {
    const { store } = this.#parts;
    if ((await store.findSubscription(id)) === undefined) return store.sessions.findFilterOwner(id);
    throw ofCallback(id);
  }

  /** Finds the position after which a new session begins. @throws BrokerError 100300 to 100304 for an eventId. */
  async startOf(group: Group, stream: Stream | undefined): ReturnType<FindStart> {
    return stream?.findStart?.() ?? this.#parts.findStart(group, stream?.offset ?? "OFFSET_LAST", stream?.mayFind);
  }

  /**
   * Sets the session's filters, first in the store if the session is stored. If the session already has its filters, changes only their QoS, which depends on
   * whether the new connection acknowledges. @throws BrokerError 100108 if another connection has begun the session with other filters meanwhile, or a
   * callback subscription has got the identifier; 200300.
   */
  async begin(session: Session, stream: Stream, generation: number): Promise<void> {
    const known = session.filterSet.all;
    if (known.length > 0) checkSame(stream.id, known, stream.filters);
    const qos = stream.acknowledges ? 1 : 0;
    if (known.length > 0 && known.every((filter) => filter.qos === qos)) return;
    const put =
      known.length > 0 ? known.map((filter) => ({ ...filter, qos }) as const) : this.#toFilters(stream, session);
    const change = { put, removed: [], generation };
    const saved = session.isStored ? await this.#parts.store.sessions.saveSessionFilters(session.key, change) : "saved";
    if (saved === "rolled-back") throw new BrokerError("busy", { details: "the index rolls back" });
    if (saved === "refused") throw new BrokerError("busy", { details: "another connection has the session" });
    if (session.isStored && known.length === 0) await this.#checkStillFree(session, stream, generation);
    session.put(put);
  }

  /** Removes the filters if a callback subscription has got the identifier since {@link check}. See `checkStillFree`. @throws BrokerError 100108. */
  async #checkStillFree(session: Session, { id, filters }: Stream, generation: number): Promise<void> {
    const { store } = this.#parts;
    if ((await store.findSubscription(id)) === undefined) return;
    await store.sessions.saveSessionFilters(session.key, { put: [], removed: filters, generation });
    throw ofCallback(id);
  }

  #toFilters({ id: firstId, filters, acknowledges }: Stream, session: Session): readonly StoredFilter[] {
    const startsAfter = session.state.taken;
    return filters.map((filter, index) => {
      const id = index === 0 ? firstId : parseSubscriptionId(this.#parts.randomness.uuid());
      const how = { isNoLocal: false, isRetainAsPublished: true, identifier: undefined };
      return { id, filter, qos: acknowledges ? 1 : 0, startsAfter, ...how };
    });
  }
}

function checkSame(id: SubscriptionId, known: readonly StoredFilter[], asked: readonly TopicFilter[]): void {
  const texts = new Set(asked);
  if (known.length === texts.size && known.every(({ filter }) => texts.has(filter))) return;
  throw elsewhere(id, `the session has the filters ${quote(known.map(({ filter }) => filter).join(","))}`);
}

function ofCallback(id: SubscriptionId): BrokerError {
  return elsewhere(id, "the identifier belongs to a callback subscription");
}

function elsewhere(id: SubscriptionId, what: string): BrokerError {
  return new BrokerError("subscriptionElsewhere", { details: `${id}: ${what}` });
}
