import type { Keccak256 } from "@stele/eth";
import type { GroupId } from "../domain/group-id.ts";
import type { TopicName } from "../domain/topic-name.ts";
import type { SubscriptionId } from "../domain/subscription.ts";
import { CleanupStack } from "../lib/cleanup-stack.ts";
import { KeyedMutex } from "../lib/keyed-mutex.ts";
import type { Logger } from "../lib/logger.ts";
import { perKey } from "../lib/per-key.ts";
import { TimeSlices } from "../lib/time-slices.ts";
import type { BlockState } from "../ports/chain-check.ts";
import type { Coordinator } from "../ports/coordinator.ts";
import type { GroupRecords } from "../ports/group-records.ts";
import type { Ledger } from "../ports/ledger.ts";
import type { Metrics } from "../ports/metrics.ts";
import type { Randomness } from "../ports/randomness.ts";
import type { Sink } from "../ports/sink.ts";
import type { Store } from "../ports/store.ts";
import type { Access } from "./access/access.ts";
import { type AccessOptions, type CreatedAccess, createAccess } from "./access/create-access.ts";
import { AccessWatch, type AccessWatchOptions } from "./access-watch.ts";
import type { Broker, GroupHealth, NodeHealth } from "./broker.ts";
import { Cluster } from "./cluster/cluster.ts";
import { handOverGraceMs, leavingMs } from "./cluster/hand-over.ts";
import { DeliveryWorkers, type WorkerFactory } from "./deliver/delivery-workers.ts";
import { ProgressWriter } from "./deliver/progress-writer.ts";
import { ReceiverFailures } from "./deliver/receiver-failures.ts";
import { Feed, type FeedOrder, type FeedOptions } from "./dispatch/feed.ts";
import { FeedHub } from "./dispatch/feed-hub.ts";
import type { Readers } from "./dispatch/readers.ts";
import { RecentBatches } from "./dispatch/recent-batches.ts";
import { EventIds } from "./event-ids.ts";
import type { BlockIndexerOptions } from "./follow/block-indexer.ts";
import { createRole } from "./follow/create-role.ts";
import { IndexHealth } from "./follow/index-health.ts";
import { IndexProgress } from "./index-progress.ts";
import { Group, type GroupOptions, Groups } from "./group.ts";
import { GroupLife, type GroupLifeOptions } from "./group-life.ts";
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
import { Wills } from "./session/wills.ts";
import { createSoleOwnership } from "./subscribe/ownership.ts";
import { findStartPosition } from "./subscribe/start-position.ts";
import { SubscriptionService, type SubscriptionServiceOptions } from "./subscribe/subscription-service.ts";
import { pause } from "../lib/pause.ts";
import { Deadline, untilAborted } from "./time.ts";
import { TopicService } from "./topics/topic-service.ts";
import { createWorkerFactory } from "./worker-factory.ts";

/** What a node needs to share its store with others. */
export interface ClusterOptions {
  readonly coordinator: Coordinator;
  /** Where clients reach this node, host:port; unique among the nodes. */
  readonly address: string;
  readonly records: Pick<GroupRecords, "findGroupRecord">;
}

export interface EngineOptions extends Pick<GroupLifeOptions, "processTrouble">, AccessOptions {
  readonly ledgers: readonly Ledger[];
  readonly store: Store;
  readonly sink: Sink;
  readonly randomness: Randomness;
  readonly metrics: Metrics;
  readonly limits: EngineLimits;
  readonly extensionPrefix: string;
  readonly hasCoordinator: boolean;
  /** A faster keccak-256 than the one in JavaScript, to verify proofs with. */
  readonly keccak?: Keccak256 | undefined;
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

interface EngineDependencies extends EngineOptions {
  readonly mender: Mender;
  readonly troubles: Troubles;
}

class Engine implements RunningBroker {
  readonly calls: Broker;
  readonly #options: EngineDependencies;
  readonly #groups: Groups;
  readonly #lives: readonly GroupLife[];
  readonly #workers: DeliveryWorkers;
  readonly #hub: FeedHub;
  readonly #progressWriter: ProgressWriter;
  readonly #cluster: Cluster | undefined;
  readonly #eventIds = new EventIds();
  readonly #recent: RecentBatches;
  readonly #slices: TimeSlices;
  readonly #subscriptions: SubscriptionService;
  readonly #sessions: Sessions;
  readonly #access: Access;
  readonly #rings: CreatedAccess["rings"];
  readonly #feedParts = perKey((groupId: GroupId) => this.#toFeedParts(groupId));
  readonly #stopping = new AbortController();
  #starting: Promise<void> = Promise.resolve();

  constructor(options: EngineDependencies) {
    this.#options = options;
    const { access, rings } = createAccess(options, (changed) => watch.check(changed));
    [this.#access, this.#rings] = [access, rings];
    this.#slices = new TimeSlices(options.clock);
    this.#hub = new FeedHub({ slices: this.#slices });
    this.#recent = new RecentBatches({ ...options, slices: this.#slices });
    this.#groups = new Groups(
      options.ledgers.map((ledger) => new Group({ ...options, ledger, ...this.#sharedOptions() })),
      options.defaultGroupId,
    );
    this.#progressWriter = new ProgressWriter({
      ...options,
      onRefused: (rows) => this.#cluster?.deliveries.onRefused(rows),
    });
    this.#workers = new DeliveryWorkers(this.#createWorkerFactory());
    const parts = {
      ...options,
      groups: this.#groups,
      workers: this.#workers,
      progressWriter: this.#progressWriter,
      eventIds: this.#eventIds,
      turns: new KeyedMutex<SubscriptionId>(),
      slices: this.#slices,
    };
    const onMembershipEnded = (): void => this.#sessions.endAll("stale");
    this.#cluster = options.cluster && new Cluster({ ...parts, ...options.cluster, onMembershipEnded });
    const ownership = this.#cluster?.claims ?? createSoleOwnership(this.#workers);
    const events = new EventQuery(parts);
    const removeSessionFilter: SubscriptionServiceOptions["removeSessionFilter"] = (id, isOwned) =>
      this.#sessions.removeFilter(id, isOwned);
    this.#subscriptions = new SubscriptionService({ ...parts, access, events, ownership, removeSessionFilter });
    const inlet = new Inlet(parts);
    const topics = new TopicService(parts);
    const serving = { ...parts, access, inlet, topics };
    this.#sessions = new Sessions({
      ...serving,
      findStart: (group, offset) => findStartPosition({ events }, group, offset),
      wills: new Wills(serving),
      isKeeper: (groupId) => this.#lives.some((life) => life.groupId === groupId && life.isFollowing),
      nodeId: () => this.#cluster?.nodeId(),
      isShared: this.#cluster !== undefined,
      toSessionParts: (groupId, mayReceive) => this.#toSessionParts(groupId, mayReceive),
    });
    this.#cluster?.member.onHint((hint) => {
      if (hint.kind === "session") this.#sessions.onHint(hint.id);
    });
    const suspend: AccessWatchOptions["suspend"] = (id, worker) => this.#subscriptions.suspend(id, worker);
    const watch = new AccessWatch({ ...parts, access, sessions: this.#sessions, suspend });
    this.calls = new GuardedBroker({
      access,
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
    for (const ring of this.#rings) await ring.start();
    if (signal.aborted) return;
    this.#cluster?.start();
    for (const group of this.#groups.all) group.keyJanitor.start();
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
    const cleanup = new CleanupStack();
    cleanup.add(() => store.stop());
    for (const ring of this.#rings) cleanup.add(() => ring.stop());
    for (const group of this.#groups.all) cleanup.add(() => group.ledger.stop(signal));
    cleanup.add(async () => void (await Promise.all(this.#groups.all.map(({ keyJanitor }) => keyJanitor.stop()))));
    cleanup.add(() => this.#cluster?.stop(signal));
    cleanup.add(() => this.#progressWriter.flush());
    cleanup.add(() => this.#workers.stop(leftMs()));
    cleanup.add(() => this.#cluster?.deliveries.release(Math.min(handOverGraceMs, leftMs() / 2), signal));
    cleanup.add(() => this.#cluster?.deliveries.stop(signal));
    cleanup.add(() => this.#subscriptions.stop());
    // No roll-back may restart readers after they have been stopped for good.
    cleanup.add(async () => void (await Promise.allSettled(this.#lives.map((life) => life.stop()))));
    const batchers = this.#groups.all.map(({ batcher }) => batcher);
    cleanup.add(async () => void (await Promise.all(batchers.map((one) => one.drain(publishing.signal)))));
    cleanup.add(async () => void (await untilAborted(Promise.allSettled([this.#starting]), signal)));
    cleanup.add(() => this.#sessions.stopAll(signal));
    await cleanup.closeAll();
  }

  async scrub(): Promise<readonly ScrubReport[]> {
    const reports: ScrubReport[] = [];
    for (const life of this.#lives) reports.push(...(await life.scrub()));
    return reports;
  }

  groupHealth(): readonly GroupHealth[] {
    const failure = this.#cluster?.member.failure;
    const healths = this.#lives.map((life) => this.#withWarnings(life.groupId, life.health()));
    return failure === undefined
      ? healths
      : healths.map((health) => ({ ...health, ready: false, reason: health.reason ?? failure }));
  }

  /** What groups know of nodes that share the store. */
  #sharedOptions(): Pick<GroupOptions, "isShared" | "nodes"> {
    const { cluster } = this.#options;
    if (cluster === undefined) return { isShared: false };
    return { isShared: true, nodes: createNodesView(cluster.coordinator, () => this.#cluster?.member.current) };
  }

  #nodeHealth(): NodeHealth | undefined {
    const { cluster } = this.#options;
    const reason = this.#cluster?.member.failure;
    return cluster && { address: cluster.address, isMember: reason === undefined, reason };
  }

  #withWarnings(groupId: GroupId, health: GroupHealth): GroupHealth {
    const paused = this.#isPaused ? "deliveries are paused at this node: no callback is attempted" : undefined;
    const warnings = [paused, this.#access.findWarning(), this.#sessions.findWarning(groupId), health.warning].filter(
      (text) => text !== undefined,
    );
    return warnings.length === 0 ? health : { ...health, warning: warnings.join("; ") };
  }

  get #isPaused(): boolean {
    return this.#options.deliveries === "paused";
  }

  #createRole(group: Group, health: IndexHealth): Pick<GroupLifeOptions, "role" | "admission"> {
    const { ledger, progress, changes } = group;
    const onTopicClosed: BlockIndexerOptions["onTopicClosed"] = (name) => group.topics.forget(name);
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

  #toSessionParts(groupId: GroupId, mayReceive: (topic: TopicName) => boolean) {
    const feedParts = this.#feedParts(groupId);
    return {
      ...this.#options,
      ...feedParts,
      eventIds: this.#eventIds,
      logger: this.#loggerOf(groupId),
      mayReceive,
      createFeed: (order: FeedOrder) => new Feed({ ...feedParts, ...order, mayReceive }),
    };
  }

  /** Nothing but what a feed needs: each feed has a copy. */
  #toFeedParts(groupId: GroupId): Omit<FeedOptions, keyof FeedOrder> {
    const { limits } = this.#options;
    const group = this.#groups.find(groupId);
    const progress = group?.progress ?? new IndexProgress();
    const findGeneration = this.#cluster && group && (() => group.findGeneration());
    return { hub: this.#hub, recent: this.#recent, slices: this.#slices, limits, groupId, progress, findGeneration };
  }

  #createWorkerFactory(): WorkerFactory {
    return createWorkerFactory({
      ...this.#options,
      access: this.#access,
      feedPartsOf: this.#feedParts,
      progressWriter: this.#progressWriter,
      eventIds: this.#eventIds,
      failures: new ReceiverFailures(this.#options.clock),
      isPaused: this.#isPaused,
      slices: this.#slices,
      findMember: () => this.#cluster?.member,
      onGivenUp: (id, worker) => void this.#subscriptions.suspend(id, worker),
    });
  }
}
