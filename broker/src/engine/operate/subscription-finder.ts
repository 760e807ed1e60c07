import { BrokerError, quote } from "@stele/wire";
import type { DeadLetter } from "../../domain/dead-letter.ts";
import type { NodeId } from "../../domain/node.ts";
import { fromStored, type Position } from "../../domain/position.ts";
import { parseAnySubscriptionId, type Subscription } from "../../domain/subscription.ts";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import { findReceiver } from "../../domain/receiver.ts";
import type { Pauses } from "../../lib/time-slices.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Coordinator } from "../../ports/coordinator.ts";
import type { Store } from "../../ports/store.ts";
import type { SubscriptionSearch } from "../../ports/subscription-search.ts";
import type { AttemptHistory } from "../deliver/attempt-history.ts";
import type { ProgressWriter } from "../deliver/progress-writer.ts";
import type { DeliveryWorkers } from "../deliver/delivery-workers.ts";
import type { Groups } from "../group.ts";
import { toCurrent } from "../query/current-progress.ts";
import { PendingCounts } from "../query/pending-counts.ts";
import type { Page, PageCall, SearchCall, SubscriptionDetails, SubscriptionView } from "./calls.ts";
import { checkText } from "./check-text.ts";
import { findNextMatch, lookReadsMax, type NextMatchParts } from "./next-match.ts";

/** Subscriptions that one call reads in search of those whose lag matches; the next call goes on from there. */
const rowsSearchedMax = 1_000;

/** Subscriptions of one read in such a search. */
const rowsReadMax = 500;

export interface SubscriptionFinderOptions {
  readonly store: Store;
  /** The store as it is, without the events that it has dropped. */
  readonly keptStore: NextMatchParts["store"];
  readonly groups: Groups;
  readonly clock: Clock;
  readonly workers: DeliveryWorkers;
  readonly progressWriter: ProgressWriter;
  readonly history: AttemptHistory;
  /** Undefined where this process has the store alone. */
  readonly nodes: { readonly coordinator: Pick<Coordinator, "listNodes"> } | undefined;
}

/** With the pauses of the caller. */
interface Paused {
  readonly slices: Pauses;
}

type Addresses = ReadonlyMap<NodeId | undefined, string>;

/** Finds callback subscriptions with their progress. */
export class SubscriptionFinder {
  readonly #options: SubscriptionFinderOptions;

  constructor(options: SubscriptionFinderOptions) {
    this.#options = options;
  }

  /** In the order of their identifiers. @throws BrokerError 100306, 200211 for the group; 100101 to 100109 for the topic. */
  async search(call: SearchCall, { after, limit, slices }: PageCall & Paused): Promise<Page<SubscriptionView>> {
    const addresses = await this.#addresses();
    const search = this.#toSearch(call, addresses);
    if (search === undefined) return { items: [], next: undefined };
    const lagMin = call.lagMin ?? 0;
    const size = lagMin > 0 ? rowsReadMax : limit;
    const items: SubscriptionView[] = [];
    let last = after === undefined ? undefined : parseAnySubscriptionId(after);
    for (let read = 0; read < rowsSearchedMax; read += size) {
      const rows = await this.#options.store.searchSubscriptions(search, { after: last, limit: size });
      for (const view of await this.#viewAll(rows, { addresses, slices })) {
        last = view.subscription.id;
        if (view.lag >= lagMin) items.push(view);
        if (items.length === limit) return { items, next: last };
      }
      if (rows.length < size) return { items, next: undefined };
    }
    return { items, next: last };
  }

  /** @throws BrokerError 100503 to 100505. */
  async get(text: string, slices: Pauses): Promise<SubscriptionDetails> {
    const id = parseAnySubscriptionId(text);
    const row = await this.#options.store.findSubscription(id);
    const [view] = row === undefined ? [] : await this.#viewAll([row], { addresses: await this.#addresses(), slices });
    if (view === undefined) throw new BrokerError("subscriptionNotExist", { details: quote(id) });
    const { workers, history } = this.#options;
    return {
      ...view,
      waitingSince: await this.#waitingSince(view, slices),
      nextAttemptAt: workers.find(id)?.nextAttemptAt,
      deadLetters: await this.#options.store.deadLetters.count(id),
      attempts: history.of(id),
    };
  }

  /** By position. @throws BrokerError 100503 to 100505; 200001 for the page. */
  async listDeadLetters(text: string, { after, limit }: PageCall): Promise<Page<DeadLetter>> {
    const { store, progressWriter } = this.#options;
    const id = parseAnySubscriptionId(text);
    if ((await store.findSubscription(id)) === undefined) {
      throw new BrokerError("subscriptionNotExist", { details: quote(id) });
    }
    await progressWriter.flush();
    const items = await store.deadLetters.list(id, { after: after === undefined ? undefined : toPlace(after), limit });
    return { items, next: items.length < limit ? undefined : items.at(-1)?.position.toString() };
  }

  /** Counts the events of all together. */
  async #viewAll(
    rows: readonly Subscription[],
    { addresses, slices }: Paused & { readonly addresses: Addresses },
  ): Promise<readonly SubscriptionView[]> {
    const counts = new PendingCounts({ ...this.#options, slices });
    const all = rows.map((row) => toCurrent(row, this.#options));
    for (const { subscription, isIdle } of all) if (!isIdle) counts.add(subscription);
    await counts.read();
    return all.map(({ subscription, isIdle }) => ({
      subscription,
      lag: isIdle ? 0 : counts.get(subscription),
      node: addresses.get(subscription.owner),
    }));
  }

  async #waitingSince({ subscription, lag }: SubscriptionView, slices: Pauses): Promise<number | undefined> {
    const { groups } = this.#options;
    const group = groups.find(subscription.groupId);
    if (lag === 0 || group === undefined) return undefined;
    const parts = { store: this.#options.keptStore, slices, readsMax: lookReadsMax };
    const event = await findNextMatch(parts, subscription).catch(() => undefined);
    return event && group.times.find(event.blockNumber);
  }

  async #addresses(): Promise<Addresses> {
    const nodes = (await this.#options.nodes?.coordinator.listNodes()) ?? [];
    return new Map(nodes.map(({ id, address }) => [id, address]));
  }

  /** Undefined if nothing can match: no such node is a member. */
  #toSearch(call: SearchCall, addresses: Addresses): SubscriptionSearch | undefined {
    const { groupId, state, kind: format, topic, prefix, host, owner: principal, node, failingMsMin } = call;
    const owner = [...addresses].find(([, address]) => address === node)?.[0];
    if (node !== undefined && owner === undefined) return undefined;
    checkText({ prefix, owner: principal });
    return {
      groupId: groupId === undefined ? undefined : this.#options.groups.getAny(groupId).id,
      state,
      format,
      filter: topic === undefined ? undefined : parseTopicFilter(topic),
      prefix,
      receivers: host === undefined ? undefined : receiversAt(host),
      principal,
      owner,
      failingBefore: failingMsMin === undefined ? undefined : this.#options.clock.now() - failingMsMin + 1,
    };
  }
}

/** `next` of a page of dead letters. */
function toPlace(text: string): Position {
  const place = Number(text);
  if (/^\d{1,16}$/.test(text) && Number.isSafeInteger(place)) return fromStored(place);
  throw new BrokerError("parameterInvalid", { details: '"cursor" is none of this list' });
}

function receiversAt(host: string): readonly string[] {
  const found = ["http", "https"].flatMap((scheme) => findReceiver(`${scheme}://${host}/`) ?? []);
  if (found.length > 0) return found;
  throw new BrokerError("parameterInvalid", { details: `"host" is not a host: ${quote(host)}` });
}
