import { BrokerError, quote } from "@stele/wire";
import { type GroupId, orDefaultGroup, parseGroupId } from "../domain/group-id.ts";
import type { Topic } from "../domain/topic.ts";
import type { TopicName } from "../domain/topic-name.ts";
import { ReadWriteLock } from "../lib/read-write-lock.ts";
import { Semaphore } from "../lib/semaphore.ts";
import { SingleFlight } from "../lib/single-flight.ts";
import type { Logger } from "../lib/logger.ts";
import type { Clock } from "../ports/clock.ts";
import type { Ledger } from "../ports/ledger.ts";
import type { Metrics } from "../ports/metrics.ts";
import type { Randomness } from "../ports/randomness.ts";
import type { IndexHead, Store } from "../ports/store.ts";
import { BlockTimes } from "./block-times.ts";
import { EventOrigins } from "./event-origins.ts";
import { RollBackHistory } from "./rollback-history.ts";
import { IndexHealth } from "./follow/index-health.ts";
import { IndexProgress } from "./index-progress.ts";
import { ChainDamage } from "./integrity/chain-damage.ts";
import { IndexDamage } from "./integrity/index-damage.ts";
import type { EngineLimits } from "./limits.ts";
import { Batcher } from "./publish/batcher.ts";
import type { IndexedPlace } from "./publish/indexed-place.ts";
import { ClaimRecorder } from "./publish/claim-recorder.ts";
import { openingPublishesMax } from "./publish/first-publish.ts";
import { KeyJanitor, type KeyJanitorOptions } from "./publish/key-janitor.ts";
import type { NodesView } from "./publish/nodes-view.ts";
import { OpenTopics } from "./publish/open-topics.ts";
import { PublishFate } from "./publish/publish-fate.ts";
import { KeyReleases } from "./publish/key-releases.ts";
import { PublishOnce } from "./publish/publish-once.ts";
import { toTokenKey } from "./publish/token-key.ts";
import { TokenSearch } from "./publish/token-search.ts";
import { Transactions } from "./publish/transactions.ts";

export interface GroupOptions {
  readonly ledger: Ledger;
  readonly store: Store;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly limits: EngineLimits;
  readonly times: KeyJanitorOptions["times"];
  /** Whether nodes share the store, so that others may write the index. */
  readonly isShared?: boolean;
  /** Prefix of extension keys. */
  readonly extensionPrefix: string;
  /** Undefined if the broker is a single node. */
  readonly nodes?: NodesView | undefined;
}

/** The wanted state of a topic after a change. */
export type TopicState = Pick<Topic, "name" | "closed">;

/** Why a group accepts no calls before its ledger has started. */
export const chainNotAnswered = "its chain has not answered yet";
/** Why a group accepts no calls while its index lacks final blocks. */
export const catchingUp = "its index is catching up with the chain";

/** One chain with its index, for the operations of the broker. */
export class Group {
  readonly ledger: Ledger;
  readonly progress = new IndexProgress();
  readonly batcher: Batcher;
  readonly topics: OpenTopics;
  /** Limits how many publishes open their topic at once. */
  readonly openings = new Semaphore(openingPublishesMax);
  /** Publishes with a key. */
  readonly once: PublishOnce;
  /** Publishes that clients commit together. */
  readonly transactions: Transactions;
  readonly keyJanitor: KeyJanitor;
  readonly keyReleases: KeyReleases;
  readonly claimRecorder: ClaimRecorder;
  /** The engine's limits, with this group's publish timeout. */
  readonly limits: EngineLimits;
  /** The lock against rollbacks: calls that create, continue or remove a subscription hold it for reading, a rollback holds it for writing. */
  readonly changes = new ReadWriteLock();
  readonly chainDamage = new ChainDamage();
  readonly indexDamage = new IndexDamage();
  readonly indexHealth: IndexHealth;
  readonly rollBacks: RollBackHistory;
  readonly times: BlockTimes;
  readonly origins: EventOrigins;
  readonly #store: Store;
  /** Whether another node may write the index and the chain can reorg: then the index may get another block in place of the one that this node waits for. */
  readonly #isForeign: boolean;
  readonly #head: SingleFlight<IndexHead | undefined>;
  #closedBecause: string | undefined = chainNotAnswered;
  #forbiddenBecause: string | undefined;

  constructor(options: GroupOptions) {
    this.ledger = options.ledger;
    this.#store = options.store;
    this.indexHealth = new IndexHealth(options.clock);
    this.rollBacks = new RollBackHistory(options.clock);
    this.limits = {
      ...options.limits,
      transactionTimeoutMs: options.ledger.publishTimeoutMs ?? options.limits.transactionTimeoutMs,
    };
    this.#isForeign = options.isShared === true && !options.ledger.isFinal;
    const isIndexed = !options.ledger.isFinal
      ? (places: readonly IndexedPlace[], signal: AbortSignal) => this.#areIndexed(places, signal)
      : undefined;
    this.topics = new OpenTopics({
      read: (name) => this.findTopic(name),
      progress: this.progress,
      waitingMax: options.limits.publishesWaitingMax,
      waitingBytesMax: options.limits.publishBytesWaitingMax,
      logger: options.logger,
    });
    const { limits, progress, topics } = this;
    this.keyJanitor = new KeyJanitor({ ...options, groupId: this.id, keys: options.store, limits });
    const readTime = (): Promise<number> => this.keyJanitor.readTime();
    const waitMsMax = limits.transactionTimeoutMs;
    const recorder = new ClaimRecorder({ keys: options.store, progress, clock: options.clock, waitMsMax, readTime });
    this.claimRecorder = recorder;
    this.batcher = new Batcher({ ...options, limits, progress, topics, isIndexed, recorder });
    this.transactions = new Transactions({ topics, batcher: this.batcher });
    this.keyReleases = new KeyReleases({ keys: options.store, janitor: this.keyJanitor });
    this.once = this.#createOnce(options);
    this.#head = new SingleFlight(() => options.store.findHead(this.id));
    this.times = new BlockTimes({ ...options, progress });
    this.origins = new EventOrigins({
      ledger: this.ledger,
      clock: options.clock,
      times: this.times,
      progress,
      getTopic: (name) => this.getTopic(name),
    });
  }

  #createOnce(options: GroupOptions): PublishOnce {
    const { id: groupId, limits, progress, topics, batcher, keyJanitor: janitor, claimRecorder: recorder } = this;
    const own = { groupId, limits, progress, topics, batcher, recorder, janitor, keys: options.store };
    const tokenKey = toTokenKey(options.extensionPrefix);
    return new PublishOnce({
      ...options,
      ...own,
      tokenKey,
      search: new TokenSearch({ ...options, ...own }),
      fate: new PublishFate({ ...options, ...own }),
      mayReorganise: !options.ledger.isFinal,
    });
  }

  get id(): GroupId {
    return this.ledger.groupId;
  }

  /** Why the group accepts no calls; undefined if it does. */
  get closedBecause(): string | undefined {
    return this.#closedBecause ?? this.#forbiddenBecause ?? (this.progress.isRebuilding ? catchingUp : undefined);
  }

  /** Refuses every call until {@link open}. Callers see the reason, so it must contain no secret. */
  close(reason: string): void {
    this.#closedBecause = reason;
  }

  /** Accepts calls again, unless {@link forbid} refuses them. */
  open(): void {
    this.#closedBecause = undefined;
  }

  /** Refuses every call, even of an open group, until `forbid` is called without a reason. */
  forbid(reason: string | undefined): void {
    this.#forbiddenBecause = reason;
  }

  /** Reads the head of the index in the store. Concurrent callers share a read. */
  findHead(): Promise<IndexHead | undefined> {
    return this.#head.read();
  }

  /**
   * As {@link findHead}, for readers that begin at the head, and for callers that do not find something in the index. No rollback can remove the oldest block
   * that this node has seen, so an index without it was emptied by another node. Until this node notices that, the group is still open.
   * @throws BrokerError 200205 for an index that was emptied and is not rebuilt yet: readers would begin before events of the past.
   */
  async findLiveHead(): Promise<IndexHead | undefined> {
    const head = await this.findHead();
    const { seen, isRebuilding } = this.progress;
    if (isRebuilding || (head?.blockNumber ?? -1) < (seen[0]?.number ?? -1))
      throw new BrokerError("chainUnreachable", { details: catchingUp });
    return head;
  }

  /** Reads the generation of the index in the store. */
  async findGeneration(): Promise<number> {
    return (await this.findHead())?.generation ?? 0;
  }

  /** @throws BrokerError 200205 if {@link findLiveHead} throws it, since a missing topic may be in the index again soon. */
  async findTopic(name: TopicName): Promise<Topic | undefined> {
    const topic = await this.#store.findTopic(this.id, name);
    if (topic === undefined) await this.findLiveHead();
    return topic;
  }

  /** @throws BrokerError 100101; 200205 as {@link findTopic}. */
  async getTopic(name: TopicName): Promise<Topic> {
    const topic = await this.findTopic(name);
    if (topic === undefined) throw new BrokerError("topicNotExist", { details: quote(name) });
    return topic;
  }

  /**
   * Whether the index has the wanted state of a topic. Call it after the block of the change was indexed. Reads the store only if a reorg that this node has
   * not seen may have undone the change.
   */
  async hasTopicSo({ name, closed }: TopicState): Promise<boolean> {
    return !this.#isForeign || (await this.findTopic(name))?.closed === closed;
  }

  /**
   * Whether the index has the batches of a transaction at these places. If it has the block of the last place, it has the batches of all earlier places, so
   * this looks only for the last. If it has another block of that number, a reorg may have moved the transaction there: then looks for each batch, until
   * `signal` aborts. If the index has forgotten the block's hash, it is much further by now: then compares no hash.
   */
  async #areIndexed(places: readonly IndexedPlace[], signal: AbortSignal): Promise<boolean> {
    const last = places.at(-1);
    if (last === undefined) return true;
    const [newest] = await this.#store.listBlocks(this.id, { atMost: 1, below: last.block.number + 1 });
    if (newest === undefined || newest.hash === last.block.hash) return this.#isIndexed(last);
    for (const place of places) if (signal.aborted || !(await this.#isIndexed(place))) return false;
    return true;
  }

  async #isIndexed({ topic, sequence, block, transactionHash }: IndexedPlace): Promise<boolean> {
    const batch = await this.#store.findBatch(this.id, { topic, sequence });
    const isThere = batch?.firstSequence === sequence && batch.blockNumber === block.number;
    return isThere && batch.transactionHash === transactionHash;
  }
}

function notUp({ id, closedBecause }: Group): string {
  return `group ${id} is not up: ${closedBecause}`;
}

/** The groups that this broker serves, by groupId. */
export class Groups {
  readonly #byId: ReadonlyMap<string, Group>;
  readonly #defaultId: GroupId;

  constructor(groups: readonly Group[], defaultId: GroupId) {
    this.#byId = new Map(groups.map((group) => [group.id, group]));
    this.#defaultId = defaultId;
  }

  get all(): readonly Group[] {
    return [...this.#byId.values()];
  }

  /** A group by its id, whether it accepts calls or not. */
  find(id: GroupId): Group | undefined {
    return this.#byId.get(id);
  }

  /** A blank groupId counts as left out. @throws BrokerError 100306 malformed, 200211 unknown, 200205 if it accepts no calls. */
  get(groupId: string | undefined): Group {
    const group = this.getAny(groupId);
    if (group.closedBecause !== undefined) throw new BrokerError("chainUnreachable", { details: notUp(group) });
    return group;
  }

  /** Like `get`, but also returns a group that accepts no calls. @throws BrokerError 100306 malformed, 200211 unknown. */
  getAny(groupId: string | undefined): Group {
    const text = orDefaultGroup(groupId, this.#defaultId);
    const group = this.#byId.get(text);
    if (group === undefined) throw new BrokerError("groupUnknown", { details: quote(parseGroupId(text)) });
    return group;
  }
}
