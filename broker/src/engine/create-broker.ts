import type { Keccak256 } from "@stele/wire";
import type { GroupId } from "../domain/group-id.ts";
import { toInterest } from "../domain/interest.ts";
import type { TopicName } from "../domain/topic-name.ts";
import type { CallbackSubscription, SubscriptionId } from "../domain/subscription.ts";
import { Closers } from "../lib/closers.ts";
import { KeyedMutex } from "../lib/keyed-mutex.ts";
import type { Logger } from "../lib/logger.ts";
import { TimeSlices } from "../lib/time-slices.ts";
import type { BlockState } from "../ports/chain-check.ts";
import type { Clock } from "../ports/clock.ts";
import type { Coordinator } from "../ports/coordinator.ts";
import type { GroupRecords } from "../ports/group-records.ts";
import type { Ledger } from "../ports/ledger.ts";
import type { Metrics } from "../ports/metrics.ts";
import type { Randomness } from "../ports/randomness.ts";
import type { Sink } from "../ports/sink.ts";
import type { Store } from "../ports/store.ts";
import { Access } from "./access/access.ts";
import { allowAll, type Policy } from "./access/policy.ts";
import type { Broker, GroupHealth, NodeHealth } from "./broker.ts";
import { Cluster } from "./cluster/cluster.ts";
import { handOverGraceMs, leavingMs } from "./cluster/hand-over.ts";
import { DeliveryWorker } from "./deliver/delivery-worker.ts";
import { DeliveryWorkers } from "./deliver/delivery-workers.ts";
import { ProgressWriter } from "./deliver/progress-writer.ts";
import { ReceiverFailures } from "./deliver/receiver-failures.ts";
import { Feed, type FeedOrder, type FeedParts } from "./dispatch/feed.ts";
import { FeedHub } from "./dispatch/feed-hub.ts";
import type { Readers } from "./dispatch/readers.ts";
import { RecentBatches } from "./dispatch/recent-batches.ts";
import { EventIds } from "./event-ids.ts";
import type { BlockIndexerParts } from "./follow/block-indexer.ts";
import { createRole } from "./follow/create-role.ts";
import { IndexHealth } from "./follow/index-health.ts";
import { IndexProgress } from "./index-progress.ts";
import { Group, type GroupParts, Groups } from "./group.ts";
import { GroupLife, type GroupLifeParts } from "./group-life.ts";
import { GuardedBroker } from "./guarded-broker.ts";
import { createMendedStore } from "./integrity/mended-store.ts";
import { BlockRepair } from "./integrity/block-repair.ts";
import { Mender } from "./integrity/mender.ts";
import { createScrubs } from "./integrity/create-scrubs.ts";
import { type Scrubbable, Scrubber, type ScrubReport } from "./integrity/scrubber.ts";
import { Troubles } from "./integrity/troubles.ts";
import type { EngineLimits } from "./limits.ts";
import { Inlet } from "./publish/inlet.ts";
import { createNodesView } from "./publish/nodes-view.ts";
import { EventQuery } from "./query/event-query.ts";
import { ProofQuery } from "./query/proof-query.ts";
import { SkippedEntriesQuery } from "./query/skipped-entries-query.ts";
import { SubscriptionQuery } from "./query/subscription-query.ts";
import { Sessions } from "./session/sessions.ts";
import type { ReaderParts } from "./session/session-parts.ts";
import { Wills } from "./session/wills.ts";
import { createSoleOwnership } from "./subscribe/ownership.ts";
import { SubscriptionService, type SubscriptionServiceParts } from "./subscribe/subscription-service.ts";
import { pause } from "../lib/pause.ts";
import { Deadline, untilAborted } from "./time.ts";
import { TopicService } from "./topics/topic-service.ts";

/** What a node needs to share its store with others. */
export interface ClusterOptions {
  readonly coordinator: Coordinator;
  /** Where clients reach this node, host:port; unique among the nodes. */
  readonly address: string;
  readonly records: Pick<GroupRecords, "findGroupRecord">;
}

export interface EngineOptions extends Pick<GroupLifeParts, "processTrouble"> {
  readonly ledgers: readonly Ledger[];
  readonly store: Store;
  readonly sink: Sink;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly limits: EngineLimits;
  readonly defaultGroupId: GroupId;
  readonly extensionPrefix: string;
  readonly hasCoordinator: boolean;
  /** A faster keccak-256 than the one in JavaScript, to verify proofs with. */
  readonly keccak?: Keccak256 | undefined;
  /** Who may do what; everybody may do everything if left out. */
  readonly policy?: Policy | undefined;
  /** `paused`: no callback is attempted, and everything else works. `active` if left out. */
  readonly deliveries?: "active" | "paused";
  /** Undefined where this process has the store alone. */
  readonly cluster?: ClusterOptions | undefined;
}

/** The engine with its lifecycle. */
export interface RunningBroker {
  /** What gateways call. */
  readonly calls: Broker;
  /** Opens the store and the chains, indexes what is final by now, and resumes delivery. */
  start(): Promise<void>;
  /**
   * Ends a start in progress, commits waiting publishes, ends delivery after the attempts in progress, writes the cursors, hands everything to the
   * other nodes, and closes. A step that fails does not keep the next ones from running. Aborts what takes longer than `graceMs` in all. If nodes
   * share the store, attempts get the time of a hand-over, and some time is reserved for leaving.
   */
  stop(graceMs: number): Promise<void>;
  /** Like `health` of the calls, for the process itself: without a check of rights. */
  groupHealth(): readonly GroupHealth[];
  /** Checks everything that each group holds once, without pauses, and repairs what is damaged. Call it after `start`. */
  scrub(): Promise<readonly ScrubReport[]>;
}

/** Builds the engine on its ports. Nothing runs before `start`. */
export function createBroker(options: EngineOptions): RunningBroker {
  const troubles = new Troubles();
  const mender = new Mender(options);
  return new Engine({
    ...options,
    mender,
    troubles,
    store: createMendedStore(options.store, { ...options, mender, troubles }),
  });
}

interface EngineParts extends EngineOptions {
  readonly mender: Mender;
  readonly troubles: Troubles;
}

class Engine implements RunningBroker {
  readonly calls: Broker;
  readonly #options: EngineParts;
  readonly #groups: Groups;
  readonly #lives: readonly GroupLife[];
  readonly #workers = new DeliveryWorkers((subscription) => this.#createWorker(subscription));
  readonly #hub: FeedHub;
  readonly #progressWriter: ProgressWriter;
  readonly #cluster: Cluster | undefined;
  readonly #eventIds = new EventIds();
  readonly #failures: ReceiverFailures;
  readonly #recent: RecentBatches;
  readonly #slices: TimeSlices;
  readonly #subscriptions: SubscriptionService;
  readonly #sessions: Sessions;
  readonly #access: Access;
  readonly #stopping = new AbortController();
  #starting: Promise<void> = Promise.resolve();

  constructor(options: EngineParts) {
    this.#options = options;
    const { policy = allowAll, defaultGroupId } = options;
    this.#access = new Access({ policy, defaultGroupId });
    this.#failures = new ReceiverFailures(options.clock);
    this.#slices = new TimeSlices(options.clock);
    this.#hub = new FeedHub({ slices: this.#slices });
    this.#recent = new RecentBatches({ ...options, slices: this.#slices });
    this.#groups = new Groups(
      options.ledgers.map((ledger) => new Group({ ...options, ledger, ...this.#sharing() })),
      options.defaultGroupId,
    );
    this.#progressWriter = new ProgressWriter({
      ...options,
      onRefused: (rows) => this.#cluster?.deliveries.onRefused(rows),
    });
    const parts = {
      ...options,
      groups: this.#groups,
      workers: this.#workers,
      progressWriter: this.#progressWriter,
      eventIds: this.#eventIds,
      turns: new KeyedMutex<SubscriptionId>(),
      slices: this.#slices,
    };
    this.#cluster = options.cluster && new Cluster({ ...parts, ...options.cluster });
    const ownership = this.#cluster?.claims ?? createSoleOwnership(this.#workers);
    const events = new EventQuery(parts);
    const removeSessionFilter: SubscriptionServiceParts["removeSessionFilter"] = (id) =>
      this.#sessions.removeFilter(id);
    this.#subscriptions = new SubscriptionService({ ...parts, events, ownership, removeSessionFilter });
    const inlet = new Inlet(parts);
    const topics = new TopicService(parts);
    this.#sessions = new Sessions({
      ...parts,
      wills: new Wills({ ...parts, access: this.#access, inlet, topics }),
      access: this.#access,
      isKeeper: (groupId) => this.#lives.some((life) => life.groupId === groupId && life.isFollowing),
      nodeId: () => this.#cluster?.nodeId(),
      isShared: this.#cluster !== undefined,
      toSessionParts: (groupId, mayReceive) => this.#toSessionParts(groupId, mayReceive),
    });
    this.#cluster?.member.onHint((hint) => {
      if (hint.kind === "session") this.#sessions.onHint(hint.id);
    });
    this.calls = new GuardedBroker({
      access: this.#access,
      groups: this.#groups,
      inlet,
      topics,
      events,
      proofs: new ProofQuery({ ...parts, events, inspectBlock: (group, block) => this.#inspectBlock(group, block) }),
      sessions: this.#sessions,
      subscriptions: this.#subscriptions,
      subscriptionQuery: new SubscriptionQuery({ ...parts, sessions: this.#sessions, nodes: options.cluster }),
      skippedEntries: new SkippedEntriesQuery(parts),
      groupHealth: () => this.groupHealth(),
      nodeHealth: () => this.#nodeHealth(),
    });
    this.#lives = this.#groups.all.map((group) => this.#createLife(group));
    options.metrics.watchGroups(() => this.groupHealth());
    if (this.#cluster !== undefined) options.metrics.watchNode(() => this.#nodeHealth());
  }

  async start(): Promise<void> {
    this.#starting = this.#start(this.#stopping.signal);
    await this.#starting;
  }

  async #start(signal: AbortSignal): Promise<void> {
    await this.#options.store.start();
    if (signal.aborted) return;
    this.#cluster?.start();
    for (const group of this.#groups.all) group.keyJanitor.start();
    await this.#subscriptions.start();
    const starts = this.#lives.map(async (life) => life.start(signal));
    const isOwn = (_: unknown, index: number): boolean => this.#lives[index]?.isOwn === true;
    const { clock, limits } = this.#options;
    await Promise.race([Promise.all(starts), pause(clock, limits.startWaitMs, signal)]);
    await Promise.all(starts.filter(isOwn));
  }

  async stop(graceMs: number): Promise<void> {
    const { clock, store } = this.#options;
    this.#stopping.abort();
    this.#cluster?.drain();
    const stopBy = clock.monotonic() + graceMs;
    const leftMs = (): number => Math.max(0, stopBy - clock.monotonic());
    using deadline = new Deadline(clock, graceMs);
    const { signal } = deadline;
    using publishing = new Deadline(clock, graceMs - (this.#cluster === undefined ? 0 : leavingMs(graceMs)));
    // Closed in the reverse order.
    const closers = new Closers();
    closers.add(() => store.stop());
    for (const group of this.#groups.all) closers.add(() => group.ledger.stop(signal));
    closers.add(async () => void (await Promise.all(this.#groups.all.map(({ keyJanitor }) => keyJanitor.stop()))));
    closers.add(() => this.#cluster?.stop(signal));
    closers.add(() => this.#progressWriter.flush());
    closers.add(() => this.#workers.stop(leftMs()));
    closers.add(() => this.#cluster?.deliveries.release(Math.min(handOverGraceMs, leftMs() / 2), signal));
    closers.add(() => this.#cluster?.deliveries.stop(signal));
    closers.add(() => this.#subscriptions.stop());
    // No roll-back may restart readers after they have been stopped for good.
    closers.add(async () => void (await Promise.allSettled(this.#lives.map((life) => life.stop()))));
    const batchers = this.#groups.all.map(({ batcher }) => batcher);
    closers.add(async () => void (await Promise.all(batchers.map((one) => one.drain(publishing.signal)))));
    closers.add(async () => void (await untilAborted(Promise.allSettled([this.#starting]), signal)));
    closers.add(() => this.#sessions.stopAll(signal));
    await closers.closeAll();
  }

  async scrub(): Promise<readonly ScrubReport[]> {
    const reports: ScrubReport[] = [];
    for (const life of this.#lives) reports.push(...(await life.scrub()));
    return reports;
  }

  groupHealth(): readonly GroupHealth[] {
    const failure = this.#cluster?.member.failure;
    const healths = this.#lives.map((life) => this.#withPause(life.health()));
    return failure === undefined
      ? healths
      : healths.map((health) => ({ ...health, ready: false, reason: health.reason ?? failure }));
  }

  /** What groups know of nodes that share the store. */
  #sharing(): Pick<GroupParts, "isShared" | "nodes"> {
    const { cluster } = this.#options;
    if (cluster === undefined) return { isShared: false };
    return { isShared: true, nodes: createNodesView(cluster.coordinator, () => this.#cluster?.member.current) };
  }

  #nodeHealth(): NodeHealth | undefined {
    const { cluster } = this.#options;
    const reason = this.#cluster?.member.failure;
    return cluster && { address: cluster.address, isMember: reason === undefined, reason };
  }

  #withPause(health: GroupHealth): GroupHealth {
    if (!this.#isPaused) return health;
    const warnings = ["deliveries are paused at this node: no callback is attempted", health.warning].filter(
      (text) => text !== undefined,
    );
    return { ...health, warning: warnings.join("; ") };
  }

  get #isPaused(): boolean {
    return this.#options.deliveries === "paused";
  }

  #createRole(group: Group, health: IndexHealth): Pick<GroupLifeParts, "role" | "admission"> {
    const { ledger, progress, changes } = group;
    const onTopicClosed: BlockIndexerParts["onTopicClosed"] = (name) => group.topics.forget(name);
    const logger = this.#loggerOf(group.id);
    const own = { group, ledger, progress, changes, health, groupId: group.id, logger, onTopicClosed };
    const writers = [this.#progressWriter, this.#sessions.writer];
    const progressWriter = { flush: async () => void (await Promise.all(writers.map((one) => one.flush()))) };
    const readers = [this.#callbacks, this.#sessions];
    const parts = { ...this.#options, ...own, hub: this.#hub, readers, progressWriter };
    const { cluster } = this.#options;
    const member = this.#cluster?.member;
    return createRole(parts, cluster && member && { ...cluster, member });
  }

  get #callbacks(): Readers {
    return {
      stop: (groupId) => this.#workers.removeAll(groupId),
      restart: (groupId) => {
        if (this.#cluster === undefined) this.#subscriptions.restart(groupId);
        else this.#cluster.deliveries.lookSoon();
      },
    };
  }

  #createLife(group: Group): GroupLife {
    const indexHealth = new IndexHealth(this.#options.clock);
    const roles = this.#createRole(group, indexHealth);
    const own = { groupId: group.id, logger: this.#loggerOf(group.id), chainDamage: group.chainDamage };
    const begin = (): readonly Scrubbable[] => createScrubs({ ...this.#options, ...own, ledger: group.ledger });
    const isDue = (): boolean => roles.role.isFollowing;
    return new GroupLife({
      ...this.#options,
      ...roles,
      ...own,
      scrubber: new Scrubber({ ...this.#options, ...own, begin, isDue }),
      group,
      indexHealth,
      countSubscriptions: () => this.#workers.countOf(group.id),
      onReady: (id) => this.#resume(id),
    });
  }

  async #inspectBlock({ id, ledger, chainDamage }: Group, blockNumber: number): Promise<BlockState> {
    const { chainCheck } = ledger;
    if (chainCheck === undefined) return "intact";
    const parts = { ...this.#options, groupId: id, logger: this.#loggerOf(id), chainCheck, chainDamage };
    return new BlockRepair(parts).inspect(blockNumber);
  }

  #resume(groupId: GroupId): void {
    this.#sessions.resume(groupId);
    if (this.#cluster === undefined) this.#subscriptions.resume(groupId);
    else this.#cluster.resume(groupId);
  }

  /** A logger that adds the group to every line. */
  #loggerOf(groupId: GroupId): Logger {
    return this.#options.logger.child({ groupId });
  }

  #toSessionParts(groupId: GroupId, mayReceive: (topic: TopicName) => boolean): ReaderParts {
    const feedParts = this.#feedParts(groupId);
    return {
      ...this.#options,
      ...feedParts,
      eventIds: this.#eventIds,
      logger: this.#loggerOf(groupId),
      mayReceive,
      createFeed: (order) => new Feed({ ...feedParts, ...order, mayReceive }),
    };
  }

  #feedParts(groupId: GroupId): Omit<FeedParts, keyof FeedOrder> {
    const group = this.#groups.find(groupId);
    const progress = group?.progress ?? new IndexProgress();
    const findGeneration = this.#cluster && group && (() => group.findGeneration());
    const shared = { hub: this.#hub, recent: this.#recent, slices: this.#slices };
    return { ...this.#options, ...shared, groupId, progress, findGeneration };
  }

  #createWorker(subscription: CallbackSubscription): DeliveryWorker {
    const { groupId, filter, cursor, owner } = subscription;
    const member = this.#cluster?.member;
    return new DeliveryWorker(subscription, {
      ...this.#options,
      logger: this.#loggerOf(groupId),
      feed: new Feed({
        ...this.#feedParts(groupId),
        filters: [filter],
        interest: toInterest(filter),
        after: cursor,
        mayReceive: this.#access.receiverOf(subscription),
        onRead: () => this.#options.troubles.clear(subscription.id),
      }),
      progressWriter: this.#progressWriter,
      eventIds: this.#eventIds,
      failures: this.#failures,
      isPaused: this.#isPaused,
      slices: this.#slices,
      mayStart: member && (() => member.isLive(owner)),
      onGivenUp: (id, worker) => void this.#subscriptions.suspend(id, worker),
    });
  }
}
