import type { Event, EventBatch } from "../../domain/event.ts";
import type { GroupId } from "../../domain/group-id.ts";
import type { PendingEvents } from "../../domain/pending-events.ts";
import type { Position } from "../../domain/position.ts";
import type { OverQuota, StoredQuota } from "../../domain/quota.ts";
import type { Subscription, SubscriptionId, SubscriptionState } from "../../domain/subscription.ts";
import type { Address, Topic } from "../../domain/topic.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { VanishedBatch } from "../../domain/vanished-events.ts";
import { type Logger, silentLogger } from "../../lib/logger.ts";
import type { GroupLease, SubscriptionKey } from "../../ports/coordinator.ts";
import type { GroupRecord, GroupRecords, WriterSet } from "../../ports/group-records.ts";
import type { Journal, JournalEntry } from "../../ports/journal.ts";
import type { BlockRef } from "../../ports/ledger.ts";
import type {
  DamagedKeyRow,
  FencedKey,
  HeldKey,
  KeyClaim,
  KeyCounts,
  PublishKey,
  PublishKeyRow,
  TakenKey,
} from "../../ports/publish-keys.ts";
import type { SecretChange, SecretRows } from "../../ports/secret-rows.ts";
import type {
  CallbackChange,
  ApplyOptions,
  BatchRange,
  EventPlace,
  IndexedBlock,
  HeldCount,
  IndexHead,
  InsertOutcome,
  OwnedCount,
  Progress,
  RetainedEvent,
  RetainedPage,
  RollBack,
  SkippedEntry,
  Store,
  PositionRange,
  RangeCounts,
  TopicSize,
  TopicRange,
  SubscriptionPage,
  TopicPage,
  TopicQuery,
  TopicPosition,
} from "../../ports/store.ts";
import type { SubscriptionMove, SubscriptionSearch } from "../../ports/subscription-search.ts";
import { countOwned } from "./count-owned.ts";
import { dropDamagedLetters } from "./subscriptions/check-dead-letters.ts";
import { emptyDamagedIndex } from "./index/check-index.ts";
import type { IndexFinding } from "./index/index-tables.ts";
import { dropDamagedSessions } from "./sessions/check-sessions.ts";
import { migrate, schemaVersion } from "./migrations/migrations.ts";
import type { HeldFile, SqlBackend, SqlDatabase } from "./schema.ts";
import { createSqliteBackend } from "./sqlite/sqlite-backend.ts";
import { passOnLetters, SqlDeadLetters } from "./subscriptions/sql-dead-letters.ts";
import { SqlGroupRecords } from "./sql-group-records.ts";
import { SqlIndex } from "./index/sql-index.ts";
import { SqlJournal } from "./sql-journal.ts";
import { SqlPublishKeys } from "./sql-publish-keys.ts";
import { SqlSubscriptions } from "./subscriptions/sql-subscriptions.ts";
import { passOnSessions, passOnShares } from "./sessions/pass-on-sessions.ts";
import { SqlSessions } from "./sessions/sql-sessions.ts";
import { SqlShares } from "./sessions/sql-shares.ts";
import type { StoreError } from "./store-error.ts";

export interface SqlStoreOptions {
  /** The database's file; its folder exists. */
  readonly file: string;
  readonly logger?: Logger;
  /** Called for each failure that lasts until the operator repairs the disk or the file: full, damaged, not readable or not writable. */
  readonly onFault?: (error: StoreError) => void;
  /** Whether closing must leave the file and its log unchanged, and the file locked until the process ends. */
  readonly keepsLog?: () => boolean;
  /** Called before a start empties a damaged index. If it throws, the start fails and the index stays unchanged. */
  readonly beforeEmptying?: (finding: IndexFinding) => Promise<void>;
}

/** A store in one SQLite file, which one process owns from `start` to `stop`. Failures of the database are thrown as StoreError. */
export function createSqlStore(
  options: SqlStoreOptions,
): Store & Journal & GroupRecords & SecretRows & { readonly file: HeldFile | undefined } {
  return new SqlStore(createSqliteBackend(options.file, options), options.logger ?? silentLogger, options);
}

interface OpenDependencies {
  readonly database: SqlDatabase;
  readonly index: SqlIndex;
  readonly subscriptions: SqlSubscriptions;
  readonly journal: SqlJournal;
  readonly groupRecords: SqlGroupRecords;
  readonly publishKeys: SqlPublishKeys;
  readonly sessions: SqlSessions;
  readonly shares: SqlShares;
  readonly deadLetters: SqlDeadLetters;
}

export class SqlStore implements Store, Journal, GroupRecords {
  readonly #backend: SqlBackend;
  readonly #logger: Logger;
  readonly #beforeEmptying: SqlStoreOptions["beforeEmptying"];
  #open: OpenDependencies | undefined;

  constructor(backend: SqlBackend, logger: Logger, { beforeEmptying }: Pick<SqlStoreOptions, "beforeEmptying"> = {}) {
    this.#backend = backend;
    this.#logger = logger;
    this.#beforeEmptying = beforeEmptying;
  }

  readonly sessions: Store["sessions"] = passOnSessions(() => this.#opened().sessions);
  readonly shares: Store["shares"] = passOnShares(() => this.#opened().shares);
  readonly deadLetters: Store["deadLetters"] = passOnLetters(() => this.#opened().deadLetters);

  /** Undefined if the store is not open, or is on a database server. */
  get file(): HeldFile | undefined {
    return this.#open?.database.file;
  }

  async start(): Promise<void> {
    if (this.#open !== undefined) throw new Error("the store is started already");
    const database = await this.#backend.open();
    try {
      const from = await migrate(database, this.#backend);
      const finding = await emptyDamagedIndex(database, this.#beforeEmptying);
      this.#open = {
        database,
        index: new SqlIndex(database),
        subscriptions: new SqlSubscriptions(database),
        journal: new SqlJournal(database),
        groupRecords: new SqlGroupRecords(database),
        publishKeys: new SqlPublishKeys(database),
        sessions: new SqlSessions(database),
        shares: new SqlShares(database),
        deadLetters: new SqlDeadLetters(database),
      };
      await this.#dropDamagedSessions(database);
      await dropDamagedLetters(database, this.#logger);
      if (finding !== undefined) {
        const remedy = "none needed: the broker rebuilds the index from the chain, and keeps subscriptions";
        this.#logger.warn("index damaged", { database: this.#backend.description, ...finding, remedy });
      }
      this.#logger.info("store opened", {
        database: this.#backend.description,
        schema: schemaVersion,
        ...(from === schemaVersion ? {} : { migratedFrom: from }),
      });
    } catch (error) {
      this.#open = undefined; // so that a later start can succeed
      await database.close();
      throw error;
    }
  }

  async #dropDamagedSessions(database: SqlDatabase): Promise<void> {
    const own = new SqlSessions(database);
    const { sessions, filters } = await dropDamagedSessions(database, (key) => own.removeSession(key));
    const remedy = "its client subscribes again";
    for (const sessionId of sessions) {
      this.#logger.error("session dropped: its row in the store is damaged", { sessionId, remedy });
    }
    for (const subscriptionId of filters) {
      this.#logger.error("filter dropped: the store lacks its session, so a row is damaged", {
        subscriptionId,
        remedy,
      });
    }
  }

  /** Waits for the call in progress. Does nothing if the store is not started. */
  async stop(): Promise<void> {
    const open = this.#open;
    this.#open = undefined;
    await open?.database.close();
  }

  async findHead(groupId: GroupId): Promise<IndexHead | undefined> {
    return this.#opened().index.findHead(groupId);
  }

  async applyBlocks(groupId: GroupId, blocks: readonly IndexedBlock[], options?: ApplyOptions): Promise<void> {
    return this.#opened().index.applyBlocks(groupId, blocks, options);
  }

  async listBlocks(
    groupId: GroupId,
    page: { readonly atMost: number; readonly below?: number },
  ): Promise<readonly BlockRef[]> {
    return this.#opened().index.listBlocks(groupId, page);
  }

  async rollBack(groupId: GroupId, to: BlockRef | undefined, lease?: GroupLease): Promise<RollBack> {
    return this.#opened().index.rollBack(groupId, to, lease);
  }

  async findVanished(groupId: GroupId, place: EventPlace): Promise<VanishedBatch | undefined> {
    return this.#opened().index.findVanished(groupId, place);
  }

  async listSkippedEntries(groupId: GroupId, atMost: number): Promise<readonly SkippedEntry[]> {
    return this.#opened().index.listSkippedEntries(groupId, atMost);
  }

  async findTopic(groupId: GroupId, name: TopicName): Promise<Topic | undefined> {
    return this.#opened().index.findTopic(groupId, name);
  }

  async findTopics(groupId: GroupId, names: readonly TopicName[]): Promise<readonly Topic[]> {
    return this.#opened().index.findTopics(groupId, names);
  }

  async findTopicsByAddress(groupId: GroupId, addresses: readonly Address[]): Promise<readonly Topic[]> {
    return this.#opened().index.findTopicsByAddress(groupId, addresses);
  }

  async listTopics(groupId: GroupId, query: TopicQuery): Promise<TopicPage> {
    return this.#opened().index.listTopics(groupId, query);
  }

  async countTopics(groupId: GroupId, prefix: string, except: readonly string[]): Promise<number> {
    return this.#opened().index.countTopics(groupId, prefix, except);
  }

  async findTopicsByDigest(groupId: GroupId, digest: string): Promise<readonly Topic[]> {
    return this.#opened().index.findTopicsByDigest(groupId, digest);
  }

  async findBatch(groupId: GroupId, event: Pick<Event, "topic" | "sequence">): Promise<EventBatch | undefined> {
    return this.#opened().index.findBatch(groupId, event);
  }

  async readBatches(groupId: GroupId, range: BatchRange): Promise<readonly EventBatch[]> {
    return this.#opened().index.readBatches(groupId, range);
  }

  async repairBatches(groupId: GroupId, block: IndexedBlock): Promise<readonly EventBatch[]> {
    return this.#opened().index.repairBatches(groupId, block);
  }

  async dropEvents(groupId: GroupId, batches: readonly EventBatch[]): Promise<readonly EventBatch[]> {
    return this.#opened().index.dropEvents(groupId, batches);
  }

  async listRetained(groupId: GroupId, page: RetainedPage): Promise<readonly RetainedEvent[]> {
    return this.#opened().index.listRetained(groupId, page);
  }

  async countEventsAfter(groupId: GroupId, topic: TopicName, after: Position): Promise<number> {
    return this.#opened().index.countEventsAfter(groupId, { topic, after });
  }

  async countEventsAfterEach(groupId: GroupId, places: readonly TopicPosition[]): Promise<readonly PendingEvents[]> {
    return this.#opened().index.countEventsAfterEach(groupId, places);
  }

  async countRange(groupId: GroupId, range: PositionRange): Promise<RangeCounts> {
    return this.#opened().index.countRange(groupId, range);
  }

  async measureTopic(groupId: GroupId, range: TopicRange): Promise<TopicSize> {
    return this.#opened().index.measureTopic(groupId, range);
  }

  async findSubscription(id: SubscriptionId): Promise<Subscription | undefined> {
    return this.#opened().subscriptions.find(id);
  }

  async findSubscriptions(ids: readonly SubscriptionId[]): Promise<readonly Subscription[]> {
    return this.#opened().subscriptions.findAll(ids);
  }

  async countSubscriptions(): Promise<number> {
    return this.#opened().subscriptions.count();
  }

  async countHeld(): Promise<readonly HeldCount[]> {
    return this.#opened().subscriptions.countHeld();
  }

  async countOwned(): Promise<readonly OwnedCount[]> {
    return countOwned(this.#opened().database.relaxed);
  }

  async countSubscriptionsTo(receiver: string): Promise<number> {
    return this.#opened().subscriptions.countTo(receiver);
  }

  async listSubscriptions(page?: SubscriptionPage): Promise<readonly Subscription[]> {
    return this.#opened().subscriptions.list(page);
  }

  async searchSubscriptions(search: SubscriptionSearch, page: SubscriptionPage): Promise<readonly Subscription[]> {
    return this.#opened().subscriptions.search(search, page);
  }

  async insertSubscription(
    subscription: Subscription,
    generation: number,
    quotas: readonly StoredQuota[] = [],
  ): Promise<InsertOutcome> {
    return this.#opened().subscriptions.insert({ subscription, generation, quotas });
  }

  async updateSubscription(
    key: SubscriptionKey,
    change: CallbackChange,
    quotas: readonly StoredQuota[] = [],
  ): Promise<boolean | OverQuota> {
    return this.#opened().subscriptions.update(key, change, quotas);
  }

  async moveSubscription(
    key: Parameters<Store["moveSubscription"]>[0],
    move: SubscriptionMove,
    generation: number,
  ): ReturnType<Store["moveSubscription"]> {
    return this.#opened().subscriptions.move(key, move, generation);
  }

  async replaceSecrets(changes: readonly SecretChange[]): Promise<number> {
    return this.#opened().subscriptions.replaceSecrets(changes);
  }

  async setSubscriptionState(key: SubscriptionKey, state: SubscriptionState): Promise<boolean> {
    return this.#opened().subscriptions.setState(key, state);
  }

  async deleteSubscription(key: SubscriptionKey): Promise<boolean> {
    return this.#opened().subscriptions.delete(key);
  }

  async saveProgress(rows: readonly Progress[]): Promise<readonly SubscriptionId[]> {
    return this.#opened().subscriptions.saveProgress(rows);
  }

  async findGroupRecord(groupId: GroupId): Promise<GroupRecord | undefined> {
    return this.#opened().groupRecords.findGroupRecord(groupId);
  }

  async saveGroupRecord(groupId: GroupId, record: GroupRecord): Promise<GroupRecord> {
    return this.#opened().groupRecords.saveGroupRecord(groupId, record);
  }

  async saveWriters(groupId: GroupId, writers: WriterSet, former?: WriterSet): Promise<WriterSet | undefined> {
    return this.#opened().groupRecords.saveWriters(groupId, writers, former);
  }

  async recordTransactions(entries: readonly JournalEntry[]): Promise<void> {
    return this.#opened().journal.recordTransactions(entries);
  }

  async listTransactions(groupId: GroupId, sender: Address): Promise<readonly JournalEntry[]> {
    return this.#opened().journal.listTransactions(groupId, sender);
  }

  async removeTransactions(groupId: GroupId, sender: Address, nonces: readonly number[]): Promise<void> {
    return this.#opened().journal.removeTransactions(groupId, sender, nonces);
  }

  async recordPublishKeys(rows: readonly KeyClaim[]): Promise<readonly TakenKey[]> {
    return this.#opened().publishKeys.recordPublishKeys(rows);
  }

  async findPublishKey(key: PublishKey): Promise<PublishKeyRow | DamagedKeyRow | undefined> {
    return this.#opened().publishKeys.findPublishKey(key);
  }

  async movePublishKey(row: PublishKeyRow, sender: string): Promise<boolean> {
    return this.#opened().publishKeys.movePublishKey(row, sender);
  }

  async releasePublishKeys(rows: readonly HeldKey[]): Promise<readonly FencedKey[]> {
    return this.#opened().publishKeys.releasePublishKeys(rows);
  }

  async expirePublishKeys(
    groupId: GroupId,
    page: { readonly before: number; readonly atMost: number },
  ): Promise<number> {
    return this.#opened().publishKeys.expirePublishKeys(groupId, page);
  }

  async countPublishKeys(groupId: GroupId, countMin: number): Promise<KeyCounts> {
    return this.#opened().publishKeys.countPublishKeys(groupId, countMin);
  }

  async dropPublishKeys(groupId: GroupId, scope: string): Promise<void> {
    return this.#opened().publishKeys.dropPublishKeys(groupId, scope);
  }

  #opened(): OpenDependencies {
    if (this.#open === undefined) throw new Error("the store is not started");
    return this.#open;
  }
}
