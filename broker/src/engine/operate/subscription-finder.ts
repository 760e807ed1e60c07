import { BrokerError, quote } from "@stele/wire";
import type { DeadLetter } from "../../domain/dead-letter.ts";
import { nonePending } from "../../domain/pending-events.ts";
import { fromStored, type Position } from "../../domain/position.ts";
import { parseAnySubscriptionId, type Subscription, type SubscriptionState } from "../../domain/subscription.ts";
import { matchesFilter, parseTopicFilter } from "../../domain/topic-filter.ts";
import { parseTopicName, type TopicName } from "../../domain/topic-name.ts";
import { findReceiver } from "../../domain/receiver.ts";
import type { Pauses } from "../../lib/time-slices.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Store } from "../../ports/store.ts";
import type { SubscriptionSearch } from "../../ports/subscription-search.ts";
import type { AttemptHistory } from "../deliver/attempt-history.ts";
import type { ProgressWriter } from "../deliver/progress-writer.ts";
import type { DeliveryWorkers } from "../deliver/delivery-workers.ts";
import type { Groups } from "../group.ts";
import type { Ownership } from "../subscribe/ownership.ts";
import { toCurrent } from "../query/current-progress.ts";
import { PendingCounts } from "../query/pending-counts.ts";
import type { ListedSubscription, Page, PageCall, SearchCall, SubscriptionDetails, SubscriptionView } from "./calls.ts";
import { checkText } from "./check-text.ts";
import { findNodeAddresses, type ListableNodes, type NodeAddresses } from "./node-addresses.ts";
import type { Paused } from "./paused.ts";
import { findWaitingTimes } from "./waiting-times.ts";

/** Maximum number of subscriptions that a call with `lagMin` reads. The next page continues from there. */
const rowsSearchedMax = 1_000;

/** Maximum number of subscriptions that a call without `lagMin` reads. It counts the events of matching subscriptions only. */
const rowsMatchedMax = 10_000;

/** Subscriptions per read of a search. */
const rowsReadMax = 500;

export interface SubscriptionFinderOptions {
  readonly store: Store;
  readonly groups: Groups;
  readonly clock: Clock;
  readonly workers: DeliveryWorkers;
  readonly progressWriter: ProgressWriter;
  readonly history: AttemptHistory;
  readonly ownership: Pick<Ownership, "isOwn">;
  readonly nodes: ListableNodes;
}

/** Finds callback subscriptions with their progress. */
export class SubscriptionFinder {
  readonly #options: SubscriptionFinderOptions;

  constructor(options: SubscriptionFinderOptions) {
    this.#options = options;
  }

  /** Like {@link search}, with the attempts that this node knows. */
  async list(call: SearchCall, page: PageCall & Paused): Promise<Page<ListedSubscription>> {
    const { items, next } = await this.search(call, page);
    return { items: await this.#withAttempts(items), next };
  }

  /** Lists matching subscriptions in the order of their identifiers. @throws BrokerError 100306, 200211 for the group; 100101 to 100109 for the topic. */
  async search(call: SearchCall, { after, limit, slices }: PageCall & Paused): Promise<Page<SubscriptionView>> {
    const addresses = await findNodeAddresses(this.#options.nodes);
    const search = this.#toSearch(call, addresses);
    if (search === undefined) return { items: [], next: undefined };
    const lagMin = call.lagMin ?? 0;
    const matched = call.matches === undefined ? undefined : parseTopicName(call.matches);
    const isSelective = lagMin > 0 || matched !== undefined || isDerived(call.state);
    let size = isSelective ? rowsReadMax : limit;
    const readMax = lagMin > 0 ? rowsSearchedMax : rowsMatchedMax;
    const items: SubscriptionView[] = [];
    let last = after === undefined ? undefined : parseAnySubscriptionId(after);
    for (let read = 0; read < readMax; ) {
      const rows = await this.#options.store.searchSubscriptions(search, { after: last, limit: size });
      const shown = call.state === undefined ? rows : rows.filter(({ state }) => state === call.state);
      const found = matched === undefined ? shown : shown.filter((row) => isFor(row, matched));
      for (const view of await this.#viewAll(found, { addresses, slices })) {
        if (view.lag >= lagMin) items.push(view);
        if (items.length === limit) return { items, next: view.subscription.id };
      }
      if (rows.length < size) return { items, next: undefined };
      last = rows.at(-1)?.id;
      read += size;
      if (size < rowsReadMax) size *= 2; // Many rows may show another state than the stored one.
      await slices.pause();
    }
    return { items, next: last };
  }

  /** @throws BrokerError 100503 to 100505. */
  async get(text: string, slices: Pauses): Promise<SubscriptionDetails> {
    const id = parseAnySubscriptionId(text);
    const row = await this.#options.store.findSubscription(id);
    const found =
      row === undefined
        ? []
        : await this.#viewAll([row], { addresses: await findNodeAddresses(this.#options.nodes), slices });
    const [listed] = await this.#withAttempts(found);
    if (listed === undefined) throw new BrokerError("subscriptionNotExist", { details: quote(id) });
    const { store, history } = this.#options;
    return { ...listed, deadLetters: await store.deadLetters.count(id), attempts: history.of(id) };
  }

  /** When the next attempt is due according to the row, which holds only delays that receivers asked for. */
  #askedUntil({ subscription: { state, retryAt } }: SubscriptionView): number | undefined {
    return state === "active" && retryAt > this.#options.clock.now() ? retryAt : undefined;
  }

  /** Lists dead letters, sorted by position. @throws BrokerError 100503 to 100505; 200001 for the cursor. */
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

  /** Counts the waiting events of all subscriptions together. */
  async #viewAll(
    rows: readonly Subscription[],
    { addresses, slices }: Paused & { readonly addresses: NodeAddresses },
  ): Promise<readonly SubscriptionView[]> {
    const counts = new PendingCounts({ ...this.#options, slices });
    const all = rows.map((row) => toCurrent(row, this.#options));
    for (const { subscription, isIdle } of all) if (!isIdle) counts.add(subscription);
    await counts.read();
    return all.map(({ subscription, isIdle }) => {
      const { count, first } = isIdle ? nonePending : counts.find(subscription);
      return { subscription, lag: count, waitingFrom: first, node: addresses.get(subscription.owner) };
    });
  }

  async #withAttempts(views: readonly SubscriptionView[]): Promise<readonly ListedSubscription[]> {
    const { workers, history, ownership } = this.#options;
    for (const { subscription } of views) if (!ownership.isOwn(subscription)) history.forget(subscription.id);
    const waiting = views.map(({ subscription, waitingFrom }) => ({
      groupId: subscription.groupId,
      from: waitingFrom,
    }));
    const times = await findWaitingTimes(waiting, this.#options);
    return views.map((view, index) => ({
      ...view,
      waitingSince: times[index],
      nextAttemptAt: workers.find(view.subscription.id)?.nextAttemptAt ?? this.#askedUntil(view),
      lastAttempt: history.lastOf(view.subscription.id),
    }));
  }

  /** Undefined if no member has the address `node`, so that nothing can match. */
  #toSearch(call: SearchCall, addresses: NodeAddresses): SubscriptionSearch | undefined {
    const { groupId, state, kind: format, topic, prefix, host, owner: principal, node, failingMsMin } = call;
    const owner = [...addresses].find(([, address]) => address === node)?.[0];
    if (node !== undefined && owner === undefined) return undefined;
    checkText({ prefix, owner: principal });
    return {
      groupId: groupId === undefined ? undefined : this.#options.groups.getAny(groupId).id,
      state: isDerived(state) ? undefined : state,
      format,
      filter: topic === undefined ? undefined : parseTopicFilter(topic),
      prefix,
      ...(host !== undefined && receiversAt(host)),
      principal,
      owner,
      failingBefore: failingMsMin === undefined ? undefined : this.#options.clock.now() - failingMsMin + 1,
    };
  }
}

/** Whether stores never write the state, but derive it when they read a row: they cannot search for it. */
function isDerived(state: SubscriptionState | undefined): boolean {
  return state === "locked" || state === "damaged";
}

/** Whether the subscription receives events of the topic. The pattern of a damaged row may be invalid. */
function isFor({ state, filter }: Subscription, topic: TopicName): boolean {
  return state !== "damaged" && matchesFilter(filter, topic);
}

/** Parses the `next` of a page of dead letters. */
function toPlace(text: string): Position {
  const place = Number(text);
  if (/^\d{1,16}$/.test(text) && Number.isSafeInteger(place)) return fromStored(place);
  throw new BrokerError("parameterInvalid", { details: '"cursor" is not from this list' });
}

/** A host without a port matches all its ports. */
function receiversAt(host: string): Pick<SubscriptionSearch, "receivers" | "hosts"> {
  const found = ["http", "https"].flatMap((scheme) => findReceiver(`${scheme}://${host}/`) ?? []);
  if (found.length > 0) return /:\d+$/.test(host) ? { receivers: found } : { hosts: found };
  throw new BrokerError("parameterInvalid", { details: `"host" is not a host: ${quote(host)}` });
}
