import { setImmediate as nextTurn } from "node:timers/promises";
import type { GroupId } from "../../domain/group-id.ts";
import type { Delivery, Subscription, SubscriptionId } from "../../domain/subscription.ts";
import type { Logger } from "../../lib/logger.ts";
import type { SecretChange, SecretRows } from "../../ports/secret-rows.ts";
import type { HeldCount, Store } from "../../ports/store.ts";
import type { SecretBox } from "./secret-box.ts";

export interface SealedStoreOptions {
  readonly box: SecretBox;
  readonly logger: Logger;
}

/** Maximum number of secrets that are decrypted in one turn of the event loop; each takes about 25 µs. */
const opensPerTurnMax = 200;

/** Maximum number of locked subscriptions that one count reads again. */
const lockedReadMax = 1_000;

/**
 * Seals the secrets of subscriptions in the store; the engine sees them in plain text. A subscription whose secret cannot be decrypted
 * is returned without a secret, in state `locked`, and logged once.
 */
export function createSealedStore(store: Store & SecretRows, options: SealedStoreOptions): Store {
  const { box } = options;
  const opener = new Opener(options);
  const seal = <One extends Delivery>(id: SubscriptionId, delivery: One): One => {
    const secret = secretOf(delivery);
    return secret === undefined ? delivery : { ...delivery, secret: box.seal(id, secret) };
  };
  return {
    ...passedThrough(store),
    start: async () => {
      await store.start();
      await reseal(store, options);
    },
    findSubscription: async (id) => {
      const row = await store.findSubscription(id);
      return row === undefined ? undefined : (await opener.openAll([row]))[0];
    },
    countHeld: async () => [...(await store.countHeld()), ...(await opener.countLocked(store))],
    findSubscriptions: async (ids) => opener.openAll(await store.findSubscriptions(ids)),
    listSubscriptions: async (page) => opener.openAll(await store.listSubscriptions(page)),
    searchSubscriptions: async (search, page) => opener.openAll(await store.searchSubscriptions(search, page)),
    moveSubscription: async (key, { delivery, ...move }, generation) => {
      const sealed = delivery === undefined ? move : { ...move, delivery: seal(key.id, delivery) };
      return store.moveSubscription(key, sealed, generation);
    },
    insertSubscription: async (subscription, generation, quotas) => {
      const delivery = seal(subscription.id, subscription.delivery);
      return store.insertSubscription({ ...subscription, delivery }, generation, quotas);
    },
    updateSubscription: async (key, change, quotas) => {
      return store.updateSubscription(key, { ...change, delivery: seal(key.id, change.delivery) }, quotas);
    },
  };
}

/** Reseals with the newest key every secret that an older key sealed, so that the operator can remove the older key. */
async function reseal(store: Store & SecretRows, { box, logger }: SealedStoreOptions): Promise<void> {
  if (!box.hasOlderKeys) return;
  let [found, count] = [0, 0];
  for await (const page of pagesOf(store)) {
    const older = page.filter(({ delivery }) => {
      const secret = secretOf(delivery);
      return secret !== undefined && box.isOfOlderKey(secret);
    });
    found += older.length;
    if (older.length > 0) count += await store.replaceSecrets(older.flatMap((row) => toChange(row, box)));
  }
  if (found > 0)
    logger.info("secrets encrypted again with the newest key", { subscriptions: count, left: found - count });
}

/** Every subscription, one page in each turn of the event loop, so that a start with many subscriptions does not block the loop. */
async function* pagesOf(store: Store): AsyncIterable<readonly Subscription[]> {
  for (let after: SubscriptionId | undefined; ; await nextTurn()) {
    const page = await store.listSubscriptions({ after, limit: opensPerTurnMax });
    yield page;
    after = page.at(-1)?.id;
    if (page.length < opensPerTurnMax) return;
  }
}

function secretOf(delivery: Delivery): string | undefined {
  return delivery.kind === "webhook" ? delivery.secret : undefined;
}

function toChange({ id, delivery }: Subscription, box: SecretBox): readonly SecretChange[] {
  const from = secretOf(delivery);
  const opened = from === undefined ? undefined : box.open(id, from);
  if (from === undefined || opened?.status !== "open") return [];
  return [{ id, from, to: box.seal(id, opened.secret) }];
}

/** Decrypts the secrets of rows, and reports those that no key opens. */
class Opener {
  readonly #options: SealedStoreOptions;
  /** The subscriptions that no key opened when they were last read; the one read longest ago comes first. */
  readonly #locked = new Map<SubscriptionId, GroupId>();

  constructor(options: SealedStoreOptions) {
    this.#options = options;
  }

  async openAll(rows: readonly Subscription[]): Promise<readonly Subscription[]> {
    const opened: Subscription[] = [];
    const shut: Shut[] = [];
    for (const [index, row] of rows.entries()) {
      if (index > 0 && index % opensPerTurnMax === 0) await nextTurn();
      opened.push(this.#open(row, shut));
    }
    this.#report(shut);
    return opened;
  }

  /** Number of known locked subscriptions by group. Reads some again: their owners may have given new secrets at another node, or removed them. */
  async countLocked(store: Pick<Store, "findSubscriptions">): Promise<readonly HeldCount[]> {
    const ids = [...this.#locked.keys()].slice(0, lockedReadMax);
    const rows = ids.length === 0 ? [] : await store.findSubscriptions(ids);
    await this.openAll(rows);
    const found = new Set(rows.map(({ id }) => id));
    for (const id of ids) if (!found.has(id)) this.#locked.delete(id);
    const counts = new Map<GroupId, number>();
    for (const groupId of this.#locked.values()) counts.set(groupId, (counts.get(groupId) ?? 0) + 1);
    return [...counts].map(([groupId, count]) => ({ groupId, state: "locked", count }));
  }

  #open(row: Subscription, shut: Shut[]): Subscription {
    const { delivery } = row;
    const isSealed = delivery.kind === "webhook" && delivery.secret !== undefined && row.state !== "damaged";
    const outcome = isSealed ? this.#options.box.open(row.id, delivery.secret) : undefined;
    if (!isSealed || outcome?.status !== "shut") this.#locked.delete(row.id);
    if (!isSealed || outcome === undefined) return row;
    if (outcome.status === "open") return { ...row, delivery: { ...delivery, secret: outcome.secret } };
    shut.push({ id: row.id, groupId: row.groupId, reason: outcome.reason });
    const locked = { ...row, delivery: { ...delivery, secret: undefined }, state: "locked" } as const;
    return row.state === "paused" || row.state === "suspended" ? { ...locked, heldState: row.state } : locked;
  }

  #report(shut: readonly Shut[]): void {
    const news = shut.filter(({ id }) => !this.#locked.has(id));
    for (const { id, groupId } of shut) {
      this.#locked.delete(id); // So that it comes last.
      this.#locked.set(id, groupId);
    }
    const [first] = news;
    if (first === undefined) return;
    this.#options.logger.error("subscriptions not delivered: their secrets cannot be decrypted", {
      count: news.length,
      subscriptionId: first.id,
      reason: first.reason,
      remedy: "restore the key file and start again, or have each receiver subscribe again with its secret",
    });
  }
}

interface Shut {
  readonly id: SubscriptionId;
  readonly groupId: GroupId;
  readonly reason: string;
}

type Sealed =
  | "start"
  | "countHeld"
  | "findSubscription"
  | "findSubscriptions"
  | "listSubscriptions"
  | "searchSubscriptions"
  | "moveSubscription"
  | "insertSubscription"
  | "updateSubscription";

/** Calls that carry no secret, listed one by one so that nobody adds a call without checking it for secrets. */
function passedThrough(store: Store): Omit<Store, Sealed> {
  return {
    stop: () => store.stop(),
    sessions: store.sessions,
    shares: store.shares,
    deadLetters: store.deadLetters,
    findHead: (groupId) => store.findHead(groupId),
    applyBlocks: (groupId, blocks, options) => store.applyBlocks(groupId, blocks, options),
    listBlocks: (groupId, page) => store.listBlocks(groupId, page),
    rollBack: (groupId, to, lease) => store.rollBack(groupId, to, lease),
    findVanished: (groupId, place) => store.findVanished(groupId, place),
    listSkippedEntries: (groupId, atMost) => store.listSkippedEntries(groupId, atMost),
    findTopic: (groupId, name) => store.findTopic(groupId, name),
    findTopics: (groupId, names) => store.findTopics(groupId, names),
    findTopicsByAddress: (groupId, addresses) => store.findTopicsByAddress(groupId, addresses),
    countTopics: (groupId, prefix, except) => store.countTopics(groupId, prefix, except),
    listTopics: (groupId, page) => store.listTopics(groupId, page),
    findTopicsByDigest: (groupId, digest) => store.findTopicsByDigest(groupId, digest),
    findBatch: (groupId, event) => store.findBatch(groupId, event),
    readBatches: (groupId, range) => store.readBatches(groupId, range),
    repairBatches: (groupId, block) => store.repairBatches(groupId, block),
    dropEvents: (groupId, batches) => store.dropEvents(groupId, batches),
    listRetained: (groupId, page) => store.listRetained(groupId, page),
    countEventsAfter: (groupId, topic, after) => store.countEventsAfter(groupId, topic, after),
    countEventsAfterEach: (groupId, places) => store.countEventsAfterEach(groupId, places),
    countRange: (groupId, range) => store.countRange(groupId, range),
    measureTopic: (groupId, range) => store.measureTopic(groupId, range),
    countSubscriptions: () => store.countSubscriptions(),
    countOwned: () => store.countOwned(),
    countSubscriptionsTo: (receiver) => store.countSubscriptionsTo(receiver),
    setSubscriptionState: (key, state) => store.setSubscriptionState(key, state),
    deleteSubscription: (key) => store.deleteSubscription(key),
    saveProgress: (rows) => store.saveProgress(rows),
    recordPublishKeys: (rows) => store.recordPublishKeys(rows),
    findPublishKey: (key) => store.findPublishKey(key),
    movePublishKey: (row, sender) => store.movePublishKey(row, sender),
    releasePublishKeys: (rows) => store.releasePublishKeys(rows),
    expirePublishKeys: (groupId, page) => store.expirePublishKeys(groupId, page),
    countPublishKeys: (groupId, countMin) => store.countPublishKeys(groupId, countMin),
    dropPublishKeys: (groupId, scope) => store.dropPublishKeys(groupId, scope),
  };
}
