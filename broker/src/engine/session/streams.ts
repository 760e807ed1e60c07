import { BrokerError, quote } from "@stele/wire";
import { parseSubscriptionId, type SubscriptionId } from "../../domain/subscription.ts";
import { sessionFiltersMax } from "../../domain/session-filter.ts";
import { isShared } from "../../domain/shared-filter.ts";
import { parseTopicFilter, type TopicFilter } from "../../domain/topic-filter.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { Randomness } from "../../ports/randomness.ts";
import type { StoredFilter } from "../../ports/session-store.ts";
import type { Store } from "../../ports/store.ts";
import type { Access } from "../access/access.ts";
import { type Caller, nobody } from "../access/caller.ts";
import type { AttachOrder, StreamOrder } from "../broker.ts";
import type { Group } from "../group.ts";
import { indexedUpTo } from "../index-progress.ts";
import type { Session } from "./session.ts";
import type { FindStart } from "./session-parts.ts";

export interface StreamsParts {
  readonly store: Pick<Store, "sessions" | "findSubscription">;
  readonly findStart: FindStart;
  readonly randomness: Randomness;
  readonly access: Access;
}

/** A stream order that was checked. */
export interface Stream {
  readonly id: SubscriptionId;
  readonly filters: readonly TopicFilter[];
  readonly acknowledges: boolean;
  /** Whose it is; undefined where it becomes the caller's. */
  readonly ownedBy: string | undefined;
  /** Undefined when the session is there already, so that it continues from its cursor. */
  readonly offset: string | undefined;
  readonly findStart: StreamOrder["findStart"];
  /** Whether its offset may be an event of a topic. */
  readonly mayFind: (topic: TopicName) => boolean;
}

interface CheckedStream {
  readonly group: Group;
  readonly caller: Caller;
  /** Who has it connected. */
  readonly held: { readonly ownedBy: string } | undefined;
}

/** Sessions that are one subscription each: it begins with its filters at a given event, and keeps them. */
export class Streams {
  readonly #parts: StreamsParts;

  constructor(parts: StreamsParts) {
    this.#parts = parts;
  }

  /** @throws BrokerError 100102, 100103, 100106, 100109 of a filter; 100505; 100702, also where it is somebody else's; 100108 the identifier is of another subscription. */
  async check(
    { group, caller, held }: CheckedStream,
    { protocol, key }: AttachOrder,
    { filters: texts, acknowledges, offset, findStart }: StreamOrder,
  ): Promise<Stream> {
    const filters = [...new Set(texts.map(toOwnFilter))];
    if (filters.length === 0) throw new BrokerError("topicBlank");
    if (filters.length > sessionFiltersMax) {
      throw new BrokerError("parameterInvalid", { details: `${filters.length} filters, at most ${sessionFiltersMax}` });
    }
    const { access, store } = this.#parts;
    for (const topic of filters) access.authorize(caller, "subscribe", { groupId: group.id, topic });
    const id = access.parseSubscriptionId(caller, key);
    if ((await store.findSubscription(id)) !== undefined) throw elsewhere(id, "it is called back");
    const known = await store.sessions.findFilterOwner(id);
    if (known !== undefined) {
      const { session } = known;
      const isSame = session.protocol === protocol && session.key === key && session.groupId === group.id;
      access.checkOwner(caller, session.principal);
      if (!isSame) throw elsewhere(id, `a session of ${session.protocol} has it`);
      checkSame(id, known.filters, filters);
    }
    // What was made while access was off becomes the admin's who continues it.
    const ownedBy = [known?.session.principal ?? held?.ownedBy].find((owner) => owner !== nobody);
    const mayFind = access.finderFor(caller);
    const start = { offset: known === undefined ? offset : undefined, findStart, mayFind };
    return { id, filters, acknowledges, ownedBy, ...start };
  }

  /** Where a session that begins now starts. @throws BrokerError of an eventId: 100300 to 100304. */
  async startOf(group: Group, stream: Stream | undefined): ReturnType<FindStart> {
    if (stream?.findStart !== undefined) return stream.findStart();
    const generation = await group.findGeneration();
    if (stream?.offset !== undefined && stream.offset !== "OFFSET_LAST")
      return this.#parts.findStart(group, stream.offset, stream.mayFind);
    return { position: indexedUpTo(group), generation };
  }

  /**
   * Gives a session its filters, on disk first, unless it has them as the stream wants them: another connection may acknowledge or not.
   * @throws BrokerError 100108 another connection has begun it with other filters meanwhile; 200300.
   */
  async begin(session: Session, stream: Stream, generation: number): Promise<void> {
    const { filters: known } = session;
    if (known.length > 0) checkSame(stream.id, known, stream.filters);
    const qos = stream.acknowledges ? 1 : 0;
    if (known.length > 0 && known.every((filter) => filter.qos === qos)) return;
    const put =
      known.length > 0 ? known.map((filter) => ({ ...filter, qos }) as const) : this.#toFilters(stream, session);
    const change = { put, removed: [], generation };
    const saved = session.isStored ? await this.#parts.store.sessions.saveSessionFilters(session, change) : "saved";
    if (saved !== "saved") throw new BrokerError("busy", { details: "the index rolls back" });
    session.put(put);
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

function toOwnFilter(text: string): TopicFilter {
  const filter = parseTopicFilter(text);
  if (!isShared(filter)) return filter;
  throw new BrokerError("topicPatternInvalid", { details: `${quote(text)}: this protocol has no shares` });
}

function checkSame(id: SubscriptionId, known: readonly StoredFilter[], asked: readonly TopicFilter[]): void {
  const texts = new Set(asked);
  if (known.length === texts.size && known.every(({ filter }) => texts.has(filter))) return;
  throw elsewhere(id, quote(known.map(({ filter }) => filter).join(",")));
}

function elsewhere(id: SubscriptionId, what: string): BrokerError {
  return new BrokerError("subscriptionElsewhere", { details: `${id}: ${what}` });
}
