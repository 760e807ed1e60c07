import { BrokerError, quote } from "@stele/wire";
import type { EventBatch } from "../../domain/event.ts";
import { fromStored, maxOf, type Position } from "../../domain/position.ts";
import {
  type CallbackSubscription,
  type Failure,
  isCallback,
  parseAnySubscriptionId,
  type Subscription,
  type SubscriptionId,
} from "../../domain/subscription.ts";
import type { KeyedMutex } from "../../lib/keyed-mutex.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Pauses } from "../../lib/time-slices.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Sink, TestOutcome } from "../../ports/sink.ts";
import type { Store } from "../../ports/store.ts";
import type { SubscriptionMove } from "../../ports/subscription-search.ts";
import { toExcerpt } from "../deliver/attempt-history.ts";
import type { ProgressWriter } from "../deliver/progress-writer.ts";
import type { DeliveryWorkers } from "../deliver/delivery-workers.ts";
import type { Group, Groups } from "../group.ts";
import { damagedSubscription } from "../integrity/repairing-store.ts";
import type { EngineLimits } from "../limits.ts";
import { toCurrent } from "../query/current-progress.ts";
import { PendingCounts } from "../query/pending-counts.ts";
import type { Ownership } from "../subscribe/ownership.ts";
import { SubscriptionQuota } from "../subscribe/subscription-quota.ts";
import { Deadline } from "../time.ts";
import type { DeadLetterOrder, OrderCall, OrderResult, SubscriptionOrder, TestResult } from "./calls.ts";
import {
  DeadLetterOrders,
  type DeadLetterOrdersOptions,
  deliveriesPaused,
  isThrown,
  type DeadLetterRun,
} from "./dead-letter-orders.ts";
import { addConcernedEvents, type ConcernedEvents } from "./concerned-events.ts";
import { DeliveryChanges, type DeliveryChangesOptions } from "./delivery-changes.ts";
import { describeOrder } from "./describe-order.ts";
import { failureAfter } from "./failure-after.ts";
import { findNextMatch } from "./next-match.ts";
import { checkState, stateAfter, withoutRights } from "./order-state.ts";
import type { Places } from "./places.ts";
import { type RunningOrders, stoppingError } from "./running-orders.ts";

/** Maximum number of tries of an order while the subscription changes its owner or the index rolls back. */
const triesMax = 10;

/** Time for an attempt in progress, in milliseconds, before the order takes effect. */
const attemptGraceMs = 1_000;

export interface SubscriptionOperatorOptions extends DeliveryChangesOptions, Omit<DeadLetterOrdersOptions, "access"> {
  readonly store: Store;
  /** May leave out the content of events: an order needs none. */
  readonly storeWithoutDropped: Pick<Store, "findHead" | "readBatches">;
  readonly groups: Groups;
  readonly logger: Logger;
  readonly access: DeliveryChangesOptions["access"] & DeadLetterOrdersOptions["access"];
  readonly workers: DeliveryWorkers;
  readonly progressWriter: ProgressWriter;
  readonly ownership: Ownership;
  readonly places: Places;
  readonly sink: Sink;
  readonly clock: Clock;
  readonly limits: EngineLimits;
  /** Called after a subscription was paused or resumed. */
  readonly onHeld: () => void;
  readonly runningOrders: RunningOrders;
  /** The lock of each subscription: every call that changes it must hold the lock. */
  readonly locks: KeyedMutex<SubscriptionId>;
}

/** How long a test event may take, in milliseconds, including the wait for a connection. */
const testMsMax = 30_000;

export interface CountedOrder extends OrderCall {
  /** The pauses of the caller. */
  readonly slices: Pauses;
  /** Throws once the caller has lost its right: an order may wait long for a receiver's consent, another node, or an attempt in progress. */
  readonly checkRight: () => void;
  /** What the order concerns, if that is already counted. */
  readonly counted?: ConcernedEvents | undefined;
}

/** The target of an order, found before anything changes. */
interface Aim {
  readonly order: SubscriptionOrder;
  /** Where the cursor moves; undefined if it stays. A skip never moves the cursor back, even if the worker has passed this place meanwhile. */
  readonly cursor: Position | undefined;
  /** Generation of the index in which the place was found. */
  readonly generation: number;
}

/** What an order does to a subscription. */
interface Plan {
  readonly move: SubscriptionMove & { readonly failure: Failure };
  readonly concerned: ConcernedEvents;
}

/**
 * Carries out the orders of operators. The node that received an order finds its target before it changes anything: a wrong order disturbs nothing. Then
 * the node claims the subscription, stops the worker, and makes the change in one transaction. The transaction checks and increments the epoch, so neither
 * a stale node nor a late write of progress undoes the change. A kill leaves the subscription with the whole change or with none of it.
 */
export class SubscriptionOperator {
  readonly #options: SubscriptionOperatorOptions;
  readonly #changes: DeliveryChanges;
  readonly #quota: SubscriptionQuota;
  readonly #deadLetters: DeadLetterOrders;

  constructor(options: SubscriptionOperatorOptions) {
    this.#options = options;
    this.#changes = new DeliveryChanges(options);
    this.#quota = new SubscriptionQuota(options);
    this.#deadLetters = new DeadLetterOrders(options);
  }

  /** @throws BrokerError 100503 to 100505, 100507; 200207, 200208, 200300; for a place as {@link Places.find}. */
  async order(text: string, call: CountedOrder): Promise<OrderResult> {
    const id = parseAnySubscriptionId(text);
    const { locks, ownership, runningOrders } = this.#options;
    const { order, slices, checkRight, isDryRun } = call;
    if (order.kind === "test") return runningOrders.run(({ aborting }) => this.#test(id, call, aborting));
    if (isDryRun) return this.#dryRunOne(id, call);
    if (isForDeadLetters(order))
      return runningOrders.run((signals) => this.#orderDeadLetters(id, order, { slices, checkRight, signals }));
    const first = await this.#aim(await this.#findCurrent(id), call);
    return locks.run(id, async () => {
      let aim = first;
      for (let tries = 0; tries < triesMax; tries += 1) {
        await ownership.claim(id);
        const result = await this.#tryOrder(id, aim, call);
        if (typeof result === "object") return result;
        if (result === "rolled-back") aim = await this.#aim(await this.#findCurrent(id), call);
      }
      throw new BrokerError("busy", { details: "the subscription or its index changed during every try" });
    });
  }

  /** Counts what an order would concern for each subscription, all in one pass. If the order would fail for one, the result of that one has the error. */
  async dryRun(ids: readonly SubscriptionId[], call: CountedOrder): Promise<readonly OrderResult[]> {
    const counts = new PendingCounts({ ...this.#options, slices: call.slices });
    const planned: { readonly id: SubscriptionId; readonly count?: () => ConcernedEvents; readonly error?: unknown }[] =
      [];
    for (const id of ids) {
      try {
        const current = await this.#findCurrent(id);
        const aim = await this.#aim(current, call);
        if (isForDeadLetters(call.order)) planned.push(await this.#dryRunDeadLetters(id, call.order));
        else if (call.order.kind === "test") planned.push({ id });
        else planned.push({ id, count: addConcernedEvents(counts, current, this.#toMove(current, aim)) });
      } catch (error) {
        planned.push({ id, error });
      }
      await call.slices.pause();
    }
    await counts.read();
    return planned.map(({ id, count, error }) => ({
      id,
      events: 0,
      ...count?.(),
      ...(error !== undefined && { error }),
    }));
  }

  async #dryRunDeadLetters(id: SubscriptionId, order: DeadLetterOrder) {
    const due = await this.#deadLetters.count(id, order);
    return { id, count: () => ({ events: due }) };
  }

  async #orderDeadLetters(
    id: SubscriptionId,
    order: DeadLetterOrder,
    parts: Omit<DeadLetterRun, "find" | "group">,
  ): Promise<OrderResult> {
    const find = async (): Promise<CallbackSubscription> => {
      const found = toCallback(await this.#find(id));
      this.#checkState(found, order);
      return found;
    };
    return this.#deadLetters.carryOut(id, order, { ...parts, find, group: this.#groupOf(await find()) });
  }

  async #dryRunOne(id: SubscriptionId, call: CountedOrder): Promise<OrderResult> {
    const [result] = await this.dryRun([id], call);
    if (result === undefined || result.error !== undefined) throw result?.error;
    return result;
  }

  async #findCurrent(id: SubscriptionId): Promise<CallbackSubscription> {
    return toCallback(toCurrent(await this.#find(id), this.#options).subscription);
  }

  /** Also tests the receiver of a paused or suspended subscription: operators test a receiver before they resume its subscription. */
  async #test(id: SubscriptionId, { isDryRun, checkRight }: CountedOrder, aborting: AbortSignal): Promise<OrderResult> {
    const { sink, clock } = this.#options;
    const found = toCallback(await this.#find(id));
    this.#checkState(found, { kind: "test" });
    if (isDryRun) return { id, events: 0 };
    const startedAt = clock.monotonic();
    using deadline = new Deadline(clock, testMsMax, aborting);
    const mayStart = (): boolean => !isThrown(checkRight);
    const { outcome, answer } = await sink.test({ id, ...found.delivery }, deadline.signal, mayStart);
    if (answer === undefined) checkRight(); // A sink takes only a boolean, so this tells the caller why nothing was sent.
    // A stop of the broker says nothing about the receiver.
    if (aborting.aborted && answer === undefined) throw stoppingError();
    const isLate = deadline.signal.aborted && answer === undefined;
    const reason = isLate ? `it took longer than ${testMsMax / 1_000} s` : reasonOf(outcome);
    const test: TestResult = {
      outcome: outcome.status,
      status: answer?.status,
      reason,
      excerpt: answer && toExcerpt(answer.body),
      durationMs: clock.monotonic() - startedAt,
    };
    return { id, events: 0, test };
  }

  async #tryOrder(id: SubscriptionId, aim: Aim, call: CountedOrder): Promise<OrderResult | "refused" | "rolled-back"> {
    return this.#groupOf(await this.#find(id)).changes.shared(async () => {
      await this.#options.progressWriter.flush();
      const known = toCallback(await this.#find(id));
      if (!this.#options.ownership.isOwn(known)) return "refused";
      this.#checkState(known, aim.order);
      call.checkRight(); // Before the worker stops: a refused order disturbs nothing.
      return (await this.#wake(known, aim, call)) ?? this.#carryOut(known, aim, call);
    });
  }

  /** For a retry, wakes the worker: a new worker would interrupt attempts in progress. Undefined for other orders, and if no worker runs. */
  async #wake(known: CallbackSubscription, aim: Aim, call: CountedOrder): Promise<OrderResult | undefined> {
    const worker = this.#options.workers.find(known.id);
    if (aim.order.kind !== "retry" || worker?.progress.epoch !== known.epoch) return undefined;
    const { concerned } = await this.#plan({ ...known, ...worker.progress }, aim, call);
    return worker.retryNow() ? this.#changed(known.id, aim, concerned) : undefined;
  }

  #changed(id: SubscriptionId, { order }: Aim, { events, unmatched }: ConcernedEvents): OrderResult {
    const concerned = { events, ...(unmatched !== undefined && { unmatched }) };
    const fields = { subscriptionId: id, order: order.kind, ...describeOrder(order), ...concerned };
    this.#options.logger.info("subscription changed by an operator", fields);
    return { id, ...concerned };
  }

  /** The receiver may accept an event while the worker stops, so events are counted after the stop. If the change fails, a new worker continues from there. */
  async #carryOut(
    known: CallbackSubscription,
    aim: Aim,
    call: CountedOrder,
  ): Promise<OrderResult | "refused" | "rolled-back"> {
    const { workers, progressWriter, store, ownership } = this.#options;
    const { id } = known;
    const worker = workers.find(id);
    const progress = await workers.remove(id, attemptGraceMs);
    const ahead = progress?.epoch === known.epoch ? worker?.acceptedAhead : undefined;
    const current = progress?.epoch === known.epoch ? { ...known, ...progress } : known;
    let outcome = "rolled-back" as Awaited<ReturnType<Store["moveSubscription"]>>;
    try {
      // The worker's last progress must be written before the change.
      if (progress !== undefined) await progressWriter.flush();
      const { move, concerned } = await this.#plan(current, aim, call);
      const url = move.delivery?.url ?? current.delivery.url;
      await this.#quota.move(current.delivery.url, url, async () => {
        call.checkRight();
        outcome = await store.moveSubscription(current, move, aim.generation);
        return outcome === "moved";
      });
      if (outcome !== "moved") return outcome;
      const { failure, ...rest } = move;
      const next = { ...current, ...rest, ...failure, epoch: current.epoch + 1 };
      if (next.state === "active") ownership.begin(next, aim.order.kind === "replay" ? undefined : ahead);
      if (next.state !== known.state) this.#options.onHeld();
      return this.#changed(id, aim, concerned);
    } finally {
      // After "refused", another node owns the row, or the row is gone.
      if (outcome === "rolled-back" && known.state === "active") ownership.begin(current, ahead);
    }
  }

  async #plan(current: CallbackSubscription, aim: Aim, { slices, counted }: CountedOrder): Promise<Plan> {
    const direct = this.#toMove(current, aim);
    const failed = await this.#findFailed(current, direct);
    const failure = failureAfter({ current, move: direct, failed });
    // A retry does not wait, even if the receiver asked for a delay.
    const move = { ...direct, failure: aim.order.kind === "retry" ? { ...failure, retryAt: 0 } : failure };
    if (counted !== undefined) return { move, concerned: counted };
    const counts = new PendingCounts({ ...this.#options, slices });
    const count = addConcernedEvents(counts, current, move);
    await counts.read();
    return { move, concerned: count() };
  }

  /** The batch of the event whose attempts failed, if the order changes the filter. That event is right after the cursor, or gone. */
  async #findFailed(
    { groupId, cursor, failedAttempts, filter: current }: CallbackSubscription,
    { filter = current }: SubscriptionMove,
  ): Promise<EventBatch | undefined> {
    if (filter === current || failedAttempts === 0) return undefined;
    const range = { after: cursor, upTo: fromStored(cursor + 1), topic: undefined, batchesMax: 1, bytesMax: 1 };
    return (await this.#options.storeWithoutDropped.readBatches(groupId, range))[0];
  }

  /** @throws BrokerError 100507 as {@link DeliveryChanges.toMove}. */
  #toMove(current: CallbackSubscription, { order, cursor: aimed }: Aim): SubscriptionMove {
    const cursor = aimed !== undefined && order.kind === "skip" ? maxOf(aimed, current.cursor) : aimed;
    const change = order.kind === "change" ? this.#changes.toMove(current, order.change) : stateAfter(current, order);
    return { ...change, ...(cursor !== undefined && { cursor }) };
  }

  async #aim(current: CallbackSubscription, { order, slices }: CountedOrder): Promise<Aim> {
    const group = this.#groupOf(current);
    this.#checkState(current, order);
    if (order.kind === "change") await this.#changes.check(current, order.change, group);
    const generation = await group.findGeneration();
    return { order, cursor: await this.#findTarget(current, order, { group, slices }), generation };
  }

  async #findTarget(
    current: CallbackSubscription,
    order: SubscriptionOrder,
    { group, slices }: { readonly group: Group; readonly slices: Pauses },
  ): Promise<Position | undefined> {
    const { places } = this.#options;
    if (order.kind === "replay") {
      const { before } = await places.find(order.from, current, group);
      if (before <= current.cursor) return before;
      throw new BrokerError("parameterInvalid", { details: '"from" lies after the cursor: skip moves it forward' });
    }
    if (order.kind !== "skip") return undefined;
    if (order.to === undefined) {
      return (
        (await findNextMatch({ store: this.#options.storeWithoutDropped, slices }, current))?.position ?? current.cursor
      );
    }
    const { after } = await places.find(order.to, current, group);
    if (after >= current.cursor) return after;
    throw new BrokerError("parameterInvalid", { details: '"to" lies before the cursor: replay moves it back' });
  }

  /** @throws BrokerError 100507; 100702 if access would suspend the subscription again at once. */
  #checkState(found: Subscription, order: Pick<SubscriptionOrder, "kind">): void {
    checkState(found, order);
    const resumes = found.state === "suspended" && (order.kind === "resume" || order.kind === "retry");
    if (resumes && !this.#options.access.mayDeliver(found)) throw withoutRights(found);
    if (this.#options.deliveries === "paused" && (order.kind === "retry" || order.kind === "test")) {
      throw deliveriesPaused();
    }
  }

  async #find(id: SubscriptionId): Promise<Subscription> {
    const found = await this.#options.store.findSubscription(id);
    if (found === undefined) throw new BrokerError("subscriptionNotExist", { details: quote(id) });
    return found;
  }

  /** @throws BrokerError 200205 if the group is not up. */
  #groupOf({ groupId }: Subscription): Group {
    return this.#options.groups.get(groupId);
  }
}

function reasonOf(outcome: TestOutcome["outcome"]): string | undefined {
  return outcome.status === "accepted" ? undefined : outcome.reason;
}

function toCallback(found: Subscription): CallbackSubscription {
  if (found.state === "damaged") throw damagedSubscription(found.id);
  if (isCallback(found)) return found;
  throw new BrokerError("subscriptionNotExist", { details: quote(found.id) });
}

function isForDeadLetters(order: SubscriptionOrder): order is DeadLetterOrder {
  return order.kind === "redeliver" || order.kind === "discard";
}
