import type { GroupId } from "../../domain/group-id.ts";
import {
  type CallbackSubscription,
  isCallback,
  type Subscription,
  type SubscriptionId,
} from "../../domain/subscription.ts";
import type { KeyedMutex } from "../../lib/keyed-mutex.ts";
import { LastingTrouble } from "../../lib/lasting-trouble.ts";
import type { TimeSlices } from "../../lib/time-slices.ts";
import { untilAborted } from "../../lib/until-aborted.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Progress, Store } from "../../ports/store.ts";
import type { AcceptedAhead } from "../deliver/accepted-ahead.ts";
import type { Groups } from "../group.ts";
import type { EngineLimits } from "../limits.ts";
import { allEnded, HandOver, type HandOverOptions } from "./hand-over.ts";
import { compareOwned, type GroupPage, type RunningWorker } from "./owned-subscriptions.ts";
import type { Member, Membership } from "./member.ts";
import { Recurrence } from "./recurrence.ts";
import { whileMember } from "./while-member.ts";

export interface DeliveriesOptions extends HandOverOptions {
  readonly clock: Clock;
  readonly member: Member;
  readonly store: Store;
  readonly groups: Groups;
  readonly troubles: {
    /** The subscriptions whose rows were damaged when this node read them last. */
    readonly damagedRows: ReadonlySet<SubscriptionId>;
  };
  /** Held by calls that create, continue or remove a subscription. */
  readonly locks: KeyedMutex<SubscriptionId>;
  readonly slices: TimeSlices;
  readonly limits: EngineLimits;
}

/**
 * Makes this node deliver the subscriptions that it owns, and no others. It starts, stops and hands over a subscription under the subscription's lock, and
 * never while the index rolls back. Workers stop without that lock when a membership ends, when the store refuses their progress, when the node stops, and for
 * a rollback.
 */
export class Deliveries {
  readonly #options: DeliveriesOptions;
  readonly #recurrence: Recurrence;
  readonly #trouble: LastingTrouble;
  readonly #handOver: HandOver;
  readonly #stopping = new AbortController();
  readonly #ready = new Set<GroupId>();
  /** Tasks in progress that start and end workers (`#settling`) or hand over (`#giving`); some may belong to a membership that has ended. */
  readonly #settling = new Set<Promise<void>>();
  readonly #giving = new Set<Promise<void>>();
  #membership: Membership | undefined;
  #running: Promise<void> = Promise.resolve();
  #unlisten = (): void => {};

  constructor(options: DeliveriesOptions) {
    this.#options = options;
    this.#handOver = new HandOver(options);
    this.#trouble = new LastingTrouble({ ...options, toleranceMs: options.limits.outageToleranceMs });
    const { ownedPollMs: everyMs, lookRestMs: restMs } = options.limits;
    this.#recurrence = new Recurrence({
      ...options,
      everyMs,
      restMs,
      failed: "owned subscriptions not read, trying again",
    });
  }

  start(): void {
    this.#unlisten = this.#options.member.onHint(({ kind }) => {
      if (kind === "nodes" || kind === "subscription") this.lookSoon();
    });
    this.#running = this.#run();
  }

  /** A warning if this node is a member but has failed for long to read which subscriptions it owns; undefined otherwise. */
  findWarning(): string | undefined {
    const text = this.#serves(this.#membership) ? this.#trouble.find() : undefined;
    return text && `this node takes over and hands over no subscriptions: ${text}`;
  }

  /**
   * Starts no further workers and begins no further hand-overs; workers keep running. Waits until no task can start a worker, or `signal` aborts. Workers
   * may still be ending for a hand-over.
   */
  async stop(signal: AbortSignal): Promise<void> {
    this.#stopping.abort();
    this.#unlisten();
    await untilAborted(Promise.allSettled([this.#running, ...this.#settling]), signal);
  }

  /** Ends all workers and releases each subscription as its worker ends. Attempts in progress have `graceMs`. Call it after {@link stop}. */
  async release(graceMs: number, signal: AbortSignal): Promise<void> {
    const giving = untilAborted(Promise.allSettled(this.#giving), signal);
    await Promise.all([giving, this.#handOver.giveAll([...this.#runningWorkers()], { graceMs, signal })]);
  }

  /** Groups for which {@link resume} was called. */
  get readyGroups(): readonly GroupId[] {
    return [...this.#ready];
  }

  /** Begins to deliver this node's subscriptions of a group. */
  resume(groupId: GroupId): void {
    this.#ready.add(groupId);
    this.lookSoon();
  }

  /** Soon reads which subscriptions this node owns, and starts or ends workers to match. */
  lookSoon(): void {
    this.#recurrence.ask();
  }

  /** Starts delivery if this node owns the subscription. The caller must hold the group's `changes` since it read or inserted the subscription's row. */
  begin(subscription: CallbackSubscription, ahead?: AcceptedAhead): void {
    if (this.#mayBegin(subscription)) this.#options.workers.add(subscription, ahead);
    else this.lookSoon();
  }

  /** Ends the workers whose progress the store refused: another node owns their subscriptions, or the index rolled back. */
  onRefused(rows: readonly Progress[]): void {
    const { workers } = this.#options;
    for (const { id, epoch } of rows) {
      if (workers.find(id)?.progress.epoch === epoch) void this.#drop(id);
    }
    this.lookSoon();
  }

  async #run(): Promise<void> {
    await whileMember(this.#options.member, this.#stopping.signal, (membership, signal) =>
      this.#serve(membership, signal),
    );
  }

  async #serve(membership: Membership, signal: AbortSignal): Promise<void> {
    const { ended } = membership;
    let stopped: Promise<void> = Promise.resolve();
    const stopAll = (): void => void (stopped = this.#stopAll());
    ended.addEventListener("abort", stopAll, { once: true });
    if (ended.aborted) stopAll();
    this.#membership = membership;
    this.#trouble.done();
    await this.#recurrence.run(() => this.#lookNoting(membership), signal);
    await stopped;
  }

  /** Ends all workers. Their acknowledgements are still written, and the store refuses those of subscriptions that another node has taken over. */
  async #stopAll(): Promise<void> {
    await Promise.all([...this.#runningWorkers()].map(({ id }) => this.#end(id)));
  }

  async #lookNoting(membership: Membership): Promise<void> {
    try {
      await this.#look(membership);
      this.#trouble.done();
    } catch (error) {
      this.#trouble.failed(error);
      throw error;
    }
  }

  async #look(membership: Membership): Promise<void> {
    const owned = await this.#options.coordinator.listOwned(membership.nodeId);
    const due = owned.filter(({ groupId, wantedBy }) => wantedBy !== undefined || this.#ready.has(groupId));
    const { wanted, doubtful } = compareOwned(due, this.#runningWorkers());
    const giving = wanted.map((page) => underWay(this.#giving, this.#give(page, membership)));
    await allEnded([...giving, underWay(this.#settling, this.#settleAll(doubtful, membership))]);
    await this.#readDamaged();
  }

  /** Another node may have removed subscriptions whose rows are damaged: this read notices that, so that they do not keep this node unready. */
  async #readDamaged(): Promise<void> {
    const { store, troubles } = this.#options;
    if (troubles.damagedRows.size > 0) await store.findSubscriptions([...troubles.damagedRows]);
  }

  async #give(page: GroupPage, membership: Membership): Promise<void> {
    await this.#withLocks(page, async () => {
      if (this.#serves(membership)) await this.#handOver.give(page.items);
    });
  }

  async #settleAll(pages: readonly GroupPage[], membership: Membership): Promise<void> {
    for (const page of pages) await this.#settle(page, membership);
  }

  /** Reads the rows of subscriptions whose workers may be wrong, and starts or ends workers to match. */
  async #settle(page: GroupPage, membership: Membership): Promise<void> {
    const { store, workers, progressWriter, slices } = this.#options;
    const ids = page.items.map(({ id }) => id);
    await this.#withLocks(page, async () => {
      if (!this.#serves(membership)) return;
      await progressWriter.flush();
      const rows = await store.findSubscriptions(ids);
      if (!this.#serves(membership)) return;
      const own = new Map(
        rows.filter((row): row is CallbackSubscription => isOwned(row, membership)).map((row) => [row.id, row]),
      );
      const wrong = ids.filter((id) => workers.find(id)?.progress.epoch !== own.get(id)?.epoch);
      await Promise.all(wrong.map((id) => this.#drop(id)));
      if (!this.#serves(membership)) return;
      for (const row of own.values()) {
        if (workers.find(row.id) === undefined) workers.add(row);
        await slices.pause();
        if (!this.#serves(membership)) return;
      }
    });
  }

  async #withLocks({ groupId, items }: GroupPage, task: () => Promise<void>): Promise<void> {
    const group = this.#options.groups.find(groupId);
    const ids = items.map(({ id }) => id);
    await this.#options.locks.runAll(ids, () => (group === undefined ? task() : group.changes.shared(task)));
  }

  /** Ends a worker whose progress the store would refuse. */
  async #drop(id: SubscriptionId): Promise<void> {
    const progress = await this.#end(id);
    if (progress !== undefined) this.#options.progressWriter.forget(progress);
  }

  async #end(id: SubscriptionId): Promise<Progress | undefined> {
    const { workers, history } = this.#options;
    const progress = await workers.remove(id, 0);
    history.forget(id); // Not before: the worker notes the attempt that it cancels.
    return progress;
  }

  *#runningWorkers(): Iterable<RunningWorker> {
    for (const { subscription, worker } of this.#options.workers.all()) {
      const { groupId } = subscription;
      const { id, epoch } = worker.progress;
      yield { id, epoch, groupId };
    }
  }

  #mayBegin({ owner }: Subscription): boolean {
    return this.#membership?.nodeId === owner && this.#serves(this.#membership);
  }

  /** Call it right before starting or ending a worker for a membership: another membership may have begun meanwhile. */
  #serves(membership: Membership | undefined): boolean {
    return !this.#stopping.signal.aborted && membership?.isLive() === true;
  }
}

function isOwned(row: Subscription, { nodeId }: Membership): row is CallbackSubscription {
  return row.owner === nodeId && row.state === "active" && isCallback(row);
}

/** Keeps a task in a set until it settles. */
function underWay(tasks: Set<Promise<void>>, task: Promise<void>): Promise<void> {
  const forget = (): void => void tasks.delete(task);
  tasks.add(task);
  task.then(forget, forget);
  return task;
}
