import type { GroupId } from "../domain/group-id.ts";
import type { TopicName } from "../domain/topic-name.ts";
import type { SubscriptionId } from "../domain/subscription.ts";
import { CleanupStack } from "../lib/cleanup-stack.ts";
import { KeyedMutex } from "../lib/keyed-mutex.ts";
import { perKey } from "../lib/per-key.ts";
import { TimeSlices } from "../lib/time-slices.ts";
import type { BlockState } from "../ports/chain-check.ts";
import type { Progress } from "../ports/store.ts";
import type { Access } from "./access/access.ts";
import { type CreatedAccess, createAccess } from "./access/create-access.ts";
import { AuditedBroker } from "./audited-broker.ts";
import { AccessWatch, type AccessWatchOptions } from "./access-watch.ts";
import type { Broker, GroupHealth, NodeHealth } from "./broker.ts";
import { Cluster } from "./cluster/cluster.ts";
import { createOperator } from "./create-operator.ts";
import { handOverGraceMs, leavingMs } from "./cluster/hand-over.ts";
import { AttemptHistory } from "./deliver/attempt-history.ts";
import { DeliveryWorkers, type WorkerFactory } from "./deliver/delivery-workers.ts";
import { ProgressWriter } from "./deliver/progress-writer.ts";
import { ReceiverFailures } from "./deliver/receiver-failures.ts";
import { Feed, type FeedRequest, type FeedOptions } from "./dispatch/feed.ts";
import { toFeedOptions } from "./dispatch/feed-options.ts";
import { FeedHub } from "./dispatch/feed-hub.ts";
import type { Readers } from "./dispatch/readers.ts";
import { RecentBatches } from "./dispatch/recent-batches.ts";
import { type EngineOptions, hungMsMax, type RunningBroker } from "./engine-options.ts";
import { EventIds } from "./event-ids.ts";
import type { BlockIndexerOptions } from "./follow/block-indexer.ts";
import { createRole } from "./follow/create-role.ts";
import { IndexProgress } from "./index-progress.ts";
import { Group, type GroupOptions, Groups } from "./group.ts";
import { GroupLife, type GroupLifeOptions } from "./group-life.ts";
import { gaugesOf, withWarnings } from "./group-health.ts";
import { GroupWatch } from "./group-watch.ts";
import { GuardedBroker } from "./guarded-broker.ts";
import { BlockRepair } from "./integrity/block-repair.ts";
import { IndexRepair } from "./integrity/index-repair.ts";
import { createScrubs } from "./integrity/create-scrubs.ts";
import { Scrubber, type ScrubReport } from "./integrity/scrubber.ts";
import { Troubles } from "./integrity/troubles.ts";
import { createReads, createRetention, type EventReads } from "./retention/create-retention.ts";
import { DeliveryLag } from "./operate/delivery-lag.ts";
import { Figures, lagOf } from "./operate/figures.ts";
import { HeldSubscriptions } from "./operate/held-subscriptions.ts";
import type { Operator } from "./operate/operator.ts";
import { RunningOrders } from "./operate/running-orders.ts";
import { createInlet } from "./publish/traced-inlet.ts";
import { createNodesView } from "./publish/nodes-view.ts";
import { EventQuery } from "./query/event-query.ts";
import { ProofQuery } from "./query/proof-query.ts";
import { SkippedEntriesQuery } from "./query/skipped-entries-query.ts";
import { SubscriptionQuery } from "./query/subscription-query.ts";
import type { FindStart } from "./session/session-parts.ts";
import { Sessions } from "./session/sessions.ts";
import { SessionTimes } from "./session/stored/session-times.ts";
import { Tails } from "./session/tails/tails.ts";
import { Wills } from "./session/stored/wills.ts";
import { createSoleOwnership } from "./subscribe/ownership.ts";
import { findStartPosition } from "./subscribe/start-position.ts";
import { SubscriptionService, type SubscriptionServiceOptions } from "./subscribe/subscription-service.ts";
import { pause } from "../lib/pause.ts";
import { untilAborted } from "../lib/until-aborted.ts";
import { TenantBroker } from "./tenants/tenant-broker.ts";
import { Deadline } from "./time.ts";
import { TopicService } from "./topics/topic-service.ts";
import { createWorkerFactory } from "./worker-factory.ts";

/** Builds the engine on its ports. Nothing runs before `start`. */
export function createBroker(options: EngineOptions): RunningBroker {
  const damage = { indexRepair: new IndexRepair(options), troubles: new Troubles() };
  const figures = new Figures({ ...options, readLag: () => lagOf(engine.groupGauges()) });
  const inspectBlock = (id: GroupId, blockNumber: number) => engine.inspectBlock(id, blockNumber);
  const engine: Engine = new Engine({
    ...options,
    ...createReads(options.store, { ...options, ...damage, inspectBlock }),
    ...damage,
    figures,
    metrics: figures.watch(options.metrics),
  });
  return engine;
}

interface EngineDependencies extends EngineOptions, EventReads {
  readonly indexRepair: IndexRepair;
  readonly troubles: Troubles;
  readonly figures: Figures;
}

class Engine implements RunningBroker {
  readonly calls: Broker;
  readonly operator: Operator;
  readonly runningOrders: RunningOrders;
  readonly #options: EngineDependencies;
  readonly #groups: Groups;
  readonly #lives: readonly GroupLife[];
  readonly #workers: DeliveryWorkers;
  readonly #hub: FeedHub;
  readonly #progressWriter: ProgressWriter;
  readonly #cluster: Cluster | undefined;
  readonly #eventIds = new EventIds();
  readonly #history = new AttemptHistory();
  readonly #held: HeldSubscriptions;
  readonly #groupWatch: GroupWatch;
  readonly #lag: DeliveryLag;
  readonly #recent: RecentBatches;
  readonly #slices: TimeSlices;
  readonly #subscriptions: SubscriptionService;
  readonly #sessions: Sessions;
  readonly #access: Access;
  readonly #accessServices: CreatedAccess["services"];
  readonly #feedParts = perKey((groupId: GroupId) => this.#toFeedParts(groupId));
  /** A logger that adds the group to every line. */
  readonly #loggerOf = perKey((groupId: GroupId) => this.#options.logger.child({ groupId }));
  readonly #suspend: AccessWatchOptions["suspend"] = (id, worker) => this.#subscriptions.suspend(id, worker);
  readonly #onRefused = (rows: readonly Progress[]): void => this.#cluster?.deliveries.onRefused(rows);
  readonly #stopping = new AbortController();
  #starting: Promise<void> = Promise.resolve();

  constructor(options: EngineDependencies) {
    [this.#options, this.runningOrders] = [options, new RunningOrders(options)];
    const { access, services, trail, topicQuota, roles } = createAccess(options, (changed) => watch.check(changed));
    [this.#access, this.#accessServices, this.#slices] = [access, services, new TimeSlices(options.clock)];
    const groupHealth = (): readonly GroupHealth[] => this.groupGauges();
    [this.#held, this.#groupWatch] = [new HeldSubscriptions(options), new GroupWatch({ ...options, groupHealth })];
    this.#hub = new FeedHub({ slices: this.#slices });
    this.#recent = new RecentBatches({ ...options, store: options.storeWithoutDropped, slices: this.#slices });
    const shared = this.#sharedOptions();
    const times = this.#createTimes(shared);
    this.#groups = new Groups(
      options.ledgers.map((ledger) => new Group({ ...options, ledger, times, ...shared })),
      options.defaultGroupId,
    );
    this.#progressWriter = new ProgressWriter({ ...options, onRefused: this.#onRefused });
    this.#workers = new DeliveryWorkers(this.#createWorkerFactory(), this.#slices);
    const parts = {
      ...options,
      groups: this.#groups,
      workers: this.#workers,
      progressWriter: this.#progressWriter,
      eventIds: this.#eventIds,
      locks: new KeyedMutex<SubscriptionId>(),
      slices: this.#slices,
      history: this.#history,
      onHeld: () => void this.#held.start(),
    };
    this.#lag = new DeliveryLag(parts);
    const onMembershipEnded = (): void => void this.#sessions.endStale();
    this.#cluster = options.cluster && new Cluster({ ...parts, ...options.cluster, onMembershipEnded });
    const ownership = this.#cluster?.claims ?? createSoleOwnership(this.#workers);
    const events = new EventQuery(parts);
    const removeSessionFilter: SubscriptionServiceOptions["removeSessionFilter"] = (id, caller) =>
      this.#sessions.removeFilter(id, caller);
    this.#subscriptions = new SubscriptionService({ ...parts, access, events, ownership, removeSessionFilter });
    const inlet = createInlet({ ...parts, onPassed: (groupId, event) => this.#hub.pass(groupId, event) });
    const topics = new TopicService(parts);
    const wills = new Wills({ ...parts, access, inlet, topicQuota });
    const serving = { ...parts, access, inlet, topics, topicQuota, wills };
    const findStart: FindStart = (group, offset, mayFind) => findStartPosition({ events, mayFind }, group, offset);
    this.#sessions = new Sessions({
      ...serving,
      ...shared,
      findStart,
      times,
      nodeId: () => this.#cluster?.member.nodeId(),
      toSessionParts: (groupId, mayReceive) => this.#toSessionParts(groupId, mayReceive),
    });
    this.#cluster?.member.onHint((hint) => void (hint.kind === "session" && this.#sessions.onHint(hint.id)));
    const watch = new AccessWatch({ ...parts, access, sessions: this.#sessions, suspend: this.#suspend });
    const [health, nodes, memberHistory] = [this.#health, options.cluster, this.#cluster?.watch.history];
    const proofs = new ProofQuery({ ...parts, events, inspectBlock: ({ id }, block) => this.inspectBlock(id, block) });
    const operating = { ...parts, ...health, access, events, proofs, ownership, nodes, memberHistory, trail, roles };
    this.operator = createOperator({ ...operating, sessions: this.#sessions, runningOrders: this.runningOrders });
    const guarded = new GuardedBroker({
      ...serving,
      events,
      proofs,
      sessions: this.#sessions,
      tails: new Tails({ ...parts, access, findStart, sessions: this.#sessions }),
      subscriptions: this.#subscriptions,
      subscriptionQuery: new SubscriptionQuery({ ...parts, sessions: this.#sessions, nodes }),
      skippedEntries: new SkippedEntriesQuery(parts),
      ...health,
    });
    const audited = trail === undefined ? guarded : new AuditedBroker(guarded, trail);
    this.calls = options.keys === undefined ? audited : new TenantBroker(audited);
    this.#lives = this.#groups.all.map((group) => this.#createLife(group));
    this.#watchMetrics();
  }

  #createTimes(shared: { readonly isShared: boolean }): SessionTimes {
    const isKeeper = (id: GroupId): boolean => this.#lives.some((life) => life.groupId === id && life.isFollowing);
    const hasKeys = (id: GroupId): boolean => this.#groups.getAny(id).keyJanitor.hasKeys;
    return new SessionTimes({ ...this.#options, ...shared, isKeeper, hasKeys });
  }

  #watchMetrics(): void {
    const { metrics } = this.#options;
    metrics.watchGroups(() => this.groupGauges());
    if (this.#cluster !== undefined) metrics.watchNode(() => this.#nodeHealth());
  }

  get #health() {
    return { groupHealth: () => this.groupHealth(), nodeHealth: () => this.#nodeHealth() };
  }

  async start(): Promise<void> {
    this.#starting = this.#start(this.#stopping.signal);
    await this.#starting;
  }

  async #start(signal: AbortSignal): Promise<void> {
    await this.#options.store.start();
    if (this.#options.readMemory !== undefined) this.#observe();
    for (const service of this.#accessServices) await service.start();
    if (signal.aborted) return;
    this.#cluster?.start();
    for (const group of this.#groups.all) group.keyJanitor.start();
    const starts = this.#lives.map(async (life) => life.start(signal));
    const isOwn = (_: unknown, index: number): boolean => this.#lives[index]?.isOwn === true;
    const { clock, limits } = this.#options;
    await Promise.race([Promise.all(starts), pause(clock, limits.startWaitMs, signal)]);
    await Promise.all(starts.filter(isOwn));
  }

  #observe(): void {
    this.#options.figures.start();
    this.#groupWatch.start();
    void this.#lag.start();
    void this.#held.start();
  }

  async stop(graceMs: number): Promise<void> {
    const [{ clock, store, figures }, { all }] = [this.#options, this.#groups];
    this.#stopping.abort();
    this.#groupWatch.stop();
    this.#cluster?.drain();
    const stopBy = clock.monotonic() + graceMs;
    const leftMs = (): number => Math.max(0, stopBy - clock.monotonic());
    using deadline = new Deadline(clock, graceMs);
    const { signal } = deadline;
    using publishing = new Deadline(clock, graceMs - (this.#cluster === undefined ? 0 : leavingMs(graceMs)));
    using hung = new Deadline(clock, graceMs + hungMsMax);
    // Steps run in the reverse of the order in which they are added.
    const cleanup = new CleanupStack();
    cleanup.add(() => store.stop(), "store");
    for (const one of [figures, this.#held, this.#lag]) cleanup.add(() => one.stop(), "figures");
    for (const service of this.#accessServices) cleanup.add(() => service.stop(), "keys, roles and audit log");
    for (const { ledger } of all) cleanup.add(() => ledger.stop(signal), "chain");
    cleanup.add(async () => void (await Promise.all(all.map((one) => one.keyJanitor.stop()))), "publish keys");
    for (const { claimRecorder } of all) cleanup.add(() => claimRecorder.stop(), "publish keys");
    cleanup.add(() => this.#cluster?.stop(signal), "membership");
    cleanup.add(() => this.#progressWriter.flush(), "writing of progress");
    cleanup.add(() => this.#workers.stop(leftMs()), "deliveries");
    const { deliveries } = this.#cluster ?? {};
    cleanup.add(() => deliveries?.release(Math.min(handOverGraceMs, leftMs() / 2), signal), "hand-over");
    cleanup.add(() => deliveries?.stop(signal), "hand-over");
    cleanup.add(() => this.#subscriptions.stop(), "subscriptions");
    // Ends all rollbacks before the readers stop: a rollback would restart them.
    cleanup.add(async () => void (await Promise.allSettled(this.#lives.map((life) => life.stop()))), "indexing");
    const drain = ({ batcher }: Group): Promise<void> => batcher.drain(publishing.signal);
    cleanup.add(async () => void (await Promise.all(all.map(drain))), "publishes");
    cleanup.add(async () => void (await untilAborted(Promise.allSettled([this.#starting]), signal)), "start");
    cleanup.add(() => this.#sessions.stopAll(signal), "sessions");
    cleanup.add(() => untilAborted(this.runningOrders.stop(leftMs() / 2), signal), "orders");
    await cleanup.closeAll(hung.signal);
  }

  async scrub(report: (ended: ScrubReport) => void): Promise<void> {
    for (const life of this.#lives) await life.scrub(report);
  }

  groupHealth(): readonly GroupHealth[] {
    const ofNode = [this.#progressWriter, this.#cluster?.deliveries, this.#access];
    const sources = { isPaused: this.#isPaused, held: this.#held, ofNode, sessions: this.#sessions };
    return this.groupGauges().map((health) => withWarnings(health, sources));
  }

  /** See {@link gaugesOf}. */
  groupGauges(): readonly GroupHealth[] {
    return gaugesOf(this.#lives, { held: this.#held, lag: this.#lag, failure: this.#cluster?.member.failure });
  }

  /** Whether nodes share the store and, if so, a view of them; the same for all groups. */
  #sharedOptions(): Required<Pick<GroupOptions, "isShared">> & Pick<GroupOptions, "nodes"> {
    const { cluster } = this.#options;
    if (cluster === undefined) return { isShared: false };
    const member = (): Cluster["member"] => {
      if (this.#cluster === undefined) throw new Error("the constructor has not ended");
      return this.#cluster.member;
    };
    return { isShared: true, nodes: createNodesView(cluster.coordinator, member) };
  }

  #nodeHealth(): NodeHealth | undefined {
    const { cluster } = this.#options;
    const reason = this.#cluster?.member.failure;
    return cluster && { address: cluster.address, isMember: reason === undefined, reason };
  }

  get #isPaused(): boolean {
    return this.#options.deliveries === "paused";
  }

  #createRole(group: Group): Pick<GroupLifeOptions, "role" | "admission"> {
    const { ledger, progress, changes, rollBacks, indexHealth: health } = group;
    const onTopicClosed: BlockIndexerOptions["onTopicClosed"] = (name) => group.topics.forget(name);
    const logger = this.#loggerOf(group.id);
    const own = { group, ledger, progress, changes, rollBacks, health, groupId: group.id, logger, onTopicClosed };
    const writers = [this.#progressWriter, this.#sessions.writers.of(group.id)];
    const progressWriter = { flush: async () => void (await Promise.all(writers.map((one) => one.flush()))) };
    const readers = [this.#callbacks, this.#sessions];
    const { cluster, storeWithoutDropped: store } = this.#options;
    const parts = { ...this.#options, ...own, store, hub: this.#hub, readers, progressWriter };
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
    const roles = this.#createRole(group);
    const { chainDamage, indexDamage } = group;
    const own = { groupId: group.id, logger: this.#loggerOf(group.id), chainDamage, indexDamage };
    const kept = { ...this.#options, ...own, store: this.#options.storeWithoutDropped, ledger: group.ledger };
    const isDue = (): boolean => roles.role.epoch !== undefined;
    return new GroupLife({
      ...this.#options,
      ...roles,
      ...own,
      scrubber: new Scrubber({ ...kept, begin: () => createScrubs(kept), epoch: () => roles.role.epoch }),
      retention: createRetention({ ...kept, times: group.times, isDue }),
      group,
      countSubscriptions: () => this.#workers.countOf(group.id),
      onReady: (id) => this.#resume(id),
    });
  }

  /** Looks for damage in a block of the chain's file and repairs it if possible; undefined if the chain has no file here. */
  async inspectBlock(id: GroupId, blockNumber: number): Promise<BlockState | undefined> {
    const { storeWithoutDropped: store } = this.#options;
    const { chainDamage, ledger } = this.#groups.get(id);
    const parts = { ...this.#options, store, groupId: id, logger: this.#loggerOf(id), chainDamage };
    return ledger.chainCheck && new BlockRepair({ ...parts, chainCheck: ledger.chainCheck }).inspect(blockNumber);
  }

  #resume(groupId: GroupId): void {
    this.#sessions.resume(groupId);
    if (this.#cluster === undefined) this.#subscriptions.resume(groupId);
    else this.#cluster.resume(groupId);
  }

  #toSessionParts(groupId: GroupId, mayReceive: (topic: TopicName) => boolean) {
    const feedParts = this.#feedParts(groupId);
    return {
      ...this.#options,
      ...feedParts,
      eventIds: this.#eventIds,
      logger: this.#loggerOf(groupId),
      mayReceive,
      createFeed: (request: FeedRequest) => new Feed(toFeedOptions(feedParts, request, mayReceive)),
    };
  }

  #toFeedParts(groupId: GroupId): Omit<FeedOptions, keyof FeedRequest> {
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
      history: this.#history,
      failures: new ReceiverFailures(this.#options.clock),
      isPaused: this.#isPaused,
      slices: this.#slices,
      originsOf: (groupId) => this.#groups.find(groupId)?.origins.createReader(),
      findMember: () => this.#cluster?.member,
      onGivenUp: (id, worker) => void this.#subscriptions.suspend(id, worker),
    });
  }
}
