import { BrokerError, formatEventId, parseEventId, quote, toBrokerError } from "@stele/wire";
import {
  type DeadLetter,
  deadLettersMax,
  findReservingNode,
  isSameLetter,
  type Reservation,
  reserveLetter,
  toLetterReason,
} from "../../domain/dead-letter.ts";
import { isCloudEvent } from "../../domain/delivery-options.ts";
import type { ClusterNode } from "../../domain/node.ts";
import type { CallbackSubscription, SubscriptionId } from "../../domain/subscription.ts";
import { BoundedLog } from "../../lib/bounded-log.ts";
import type { Pauses } from "../../lib/time-slices.ts";
import type { AttemptOutcome } from "../../ports/sink.ts";
import type { Store } from "../../ports/store.ts";
import type { Access } from "../access/access.ts";
import type { OriginSource } from "../broker.ts";
import { type AttemptsOptions, attempt } from "../deliver/attempts.ts";
import type { ProgressWriter } from "../deliver/progress-writer.ts";
import { toNotification, toTarget } from "../deliver/to-notification.ts";
import type { EventIds } from "../event-ids.ts";
import type { Group } from "../group.ts";
import type { EventQuery } from "../query/event-query.ts";
import type { Ownership } from "../subscribe/ownership.ts";
import { Deadline } from "../time.ts";
import type { DeadLetterOrder, DeadLettersResult, OrderResult } from "./calls.ts";
import type { OrderSignals } from "./running-orders.ts";

export interface DeadLetterOrdersOptions
  extends Pick<AttemptsOptions, "sink" | "clock" | "metrics" | "history" | "logger"> {
  readonly store: Pick<Store, "deadLetters">;
  readonly events: Pick<EventQuery, "get">;
  readonly eventIds: EventIds;
  readonly access: Pick<Access, "receiverOf" | "namesFor" | "mayDeliver" | "callbackTurnOf">;
  readonly progressWriter: Pick<ProgressWriter, "flush">;
  readonly ownership: Pick<Ownership, "owner">;
  /** Undefined for a single node. */
  readonly listNodes: (() => Promise<readonly ClusterNode[]>) | undefined;
  /** Whether this node attempts deliveries. The default is `active`. */
  readonly deliveries?: "active" | "paused" | undefined;
}

/** How long one order makes attempts, in milliseconds. The remaining dead letters wait for another order. */
const redeliverMsMax = 30_000;

/** Maximum number of log lines about delivered dead letters in a burst; each second allows one more. */
const deliveredLinesMax = 20;

/** The context of an order for the dead letters of one subscription. */
export interface DeadLetterRun {
  /** Reads the subscription again, because an operator may change it between two attempts. @throws BrokerError 100504, 100507. */
  readonly find: () => Promise<CallbackSubscription>;
  readonly group: Group;
  readonly slices: Pauses;
  /** Throws once the caller has lost its right: an attempt may wait half a minute for the owner's quota, the origin of its event and a connection. */
  readonly checkRight: () => void;
  readonly signals: OrderSignals;
}

interface Redelivery extends DeadLetterRun {
  /** All attempts of the order share it: it bounds how long a chain that hangs delays the whole order. */
  readonly origins: OriginSource;
}

/** The result of the order, without the number of dead letters that are left. */
interface RunResult extends Pick<DeadLettersResult, "failure"> {
  /** Number of dead letters that were removed. */
  readonly events: number;
}

/**
 * Delivers dead letters again, or discards them. Removes a delivered dead letter only after the receiver has accepted its event: if the broker is killed in
 * between, the next order sends the event again. Any node may carry out an order, because workers do not deliver dead letters. Nodes that share a store
 * reserve each dead letter before they attempt it.
 */
export class DeadLetterOrders {
  readonly #options: DeadLetterOrdersOptions;
  /** Subscriptions for which this node runs an order. Two orders at once would send the same event twice. */
  readonly #running = new Set<SubscriptionId>();
  readonly #deliveredLog: BoundedLog;

  constructor(options: DeadLetterOrdersOptions) {
    this.#options = options;
    this.#deliveredLog = new BoundedLog({ ...options, lines: { atOnce: deliveredLinesMax, perSecond: 1 } });
  }

  /** Number of dead letters that an order concerns. @throws BrokerError 100300 to 100303 for the event. */
  async count(id: SubscriptionId, order: DeadLetterOrder): Promise<number> {
    return (await this.#listDue(id, order)).length;
  }

  /**
   * Refuses a second order while one runs, because a queue would fill with orders that wait for one receiver.
   * @throws BrokerError 100300 to 100303 for the event; 100702 if the owner may no longer receive it; 100507 if deliveries are paused, or while this node runs
   * another order for the subscription, or another node delivers the same dead letters; as `run.find`.
   */
  async carryOut(id: SubscriptionId, order: DeadLetterOrder, run: DeadLetterRun): Promise<OrderResult> {
    if (this.#running.has(id)) throw anotherOrderRuns();
    this.#running.add(id);
    try {
      const due = await this.#listDue(id, order);
      const known = await this.#options.store.deadLetters.count(id);
      const { events, failure } = await (order.kind === "discard"
        ? this.#discard(id, due, run)
        : this.#redeliver(due, run));
      const counting = this.#options.store.deadLetters.count(id);
      // Once the order has removed dead letters, the answer must say so, even if the database fails.
      const left = await (events === 0 ? counting : counting.catch(() => known - events));
      return { id, events, deadLetters: { left, ...(failure && { failure }) } };
    } finally {
      this.#running.delete(id);
    }
  }

  async #discard(id: SubscriptionId, due: readonly DeadLetter[], run: DeadLetterRun): Promise<RunResult> {
    const reservation = await this.#ownReservation();
    if (reservation !== undefined && (await this.#isAnyReserved(due, reservation))) throw anotherOrderRuns();
    run.checkRight();
    const events = await this.#options.store.deadLetters.remove(due);
    this.#options.metrics.deadLetters("discarded", events);
    const [first] = due;
    const eventId = due.length === 1 ? first?.eventId : undefined;
    this.#options.logger.info("dead letters discarded", { subscriptionId: id, events, ...(eventId && { eventId }) });
    return { events };
  }

  /**
   * Attempts the dead letters in order of position. After a failed attempt it tries the next dead letter, unless the receiver is gone or asks for a delay. To
   * keep the order, it stops at a dead letter that another node has reserved. It also stops at one that was removed or changed meanwhile.
   */
  async #redeliver(due: readonly DeadLetter[], run: DeadLetterRun): Promise<RunResult> {
    const { clock, logger } = this.#options;
    using stopping = new Deadline(clock, redeliverMsMax, run.signals.stopping);
    using aborting = new Deadline(clock, redeliverMsMax, run.signals.aborting);
    const signals = { stopping: stopping.signal, aborting: aborting.signal };
    const origins = run.group.origins.createReader();
    let events = 0;
    let failure: DeadLettersResult["failure"];
    for (const letter of due) {
      try {
        await run.slices.pause();
        const reserved = await this.#reserve(letter);
        if (reserved === "by another" && letter === due[0]) throw anotherOrderRuns();
        if (typeof reserved === "string") break;
        const outcome = await this.#attempt(reserved, { ...run, signals, origins }).catch((error: unknown) =>
          this.#undoReservation(letter, reserved).then(() => Promise.reject(error)),
        );
        if (outcome.status === "accepted") {
          events += await this.#recordDelivered(reserved);
          continue;
        }
        if (outcome.status === "withheld" || signals.aborting.aborted) {
          await this.#undoReservation(letter, reserved);
          break;
        }
        failure = { eventId: letter.eventId, reason: outcome.reason };
        await this.#recordFailed(letter, { reserved, reason: outcome.reason });
        if (outcome.status === "gone" || outcome.retryAfterMs !== undefined) break;
      } catch (error) {
        // Once an event was delivered, end with a result: an error would not tell the caller and the audit log about it.
        if (events === 0) throw error;
        const { subscriptionId, eventId } = letter;
        logger.warn("the order to deliver dead letters again ended early", { subscriptionId, eventId, error });
        failure = { eventId, reason: toBrokerError(error).message };
        break;
      }
    }
    return { events, ...(failure !== undefined && { failure }) };
  }

  /** Whether a live node has reserved one of the dead letters. */
  async #isAnyReserved(letters: readonly DeadLetter[], reservation: Reservation): Promise<boolean> {
    const reserving = new Set(letters.flatMap((letter) => findReservingNode(letter, reservation) ?? []));
    const nodes = reserving.size === 0 ? [] : ((await this.#options.listNodes?.()) ?? []);
    return nodes.some(({ id }) => reserving.has(id));
  }

  /** `gone`: the dead letter was removed or changed meanwhile. A single node reserves nothing: `#running` already prevents a second order. */
  async #reserve(letter: DeadLetter): Promise<DeadLetter | "by another" | "gone"> {
    const reservation = await this.#ownReservation();
    if (reservation === undefined) return letter;
    if (await this.#isAnyReserved([letter], reservation)) return "by another";
    const { deadLetters } = this.#options.store;
    const reserved = reserveLetter(letter, reservation);
    if (await deadLetters.replace(letter, reserved)) return reserved;
    const found = await deadLetters.find(letter.subscriptionId, letter.eventId);
    const own = found.filter(({ position }) => position === letter.position);
    return own.some((one) => findReservingNode(one, reservation) !== undefined) ? "by another" : "gone";
  }

  /** The reservation that this node would make now. Undefined for a single node. @throws BrokerError 200207. */
  async #ownReservation(): Promise<Reservation | undefined> {
    const { ownership, clock } = this.#options;
    const nodeId = await ownership.owner();
    return nodeId && { nodeId, now: clock.now() };
  }

  /** Restores the dead letter without counting an attempt: the node made none, or does not know whether the receiver has the event. */
  async #undoReservation(letter: DeadLetter, reserved: DeadLetter): Promise<void> {
    if (reserved !== letter) await this.#options.store.deadLetters.replace(reserved, letter);
  }

  async #attempt(letter: DeadLetter, run: Redelivery): Promise<AttemptOutcome> {
    const { find, group, signals, origins, checkRight } = run;
    const { access, events, eventIds } = this.#options;
    const before = await find();
    if (!(await this.#isUnchanged(letter))) return { status: "withheld" }; // After a rollback, the event is missing too.
    this.#checkMayDeliver(before, letter);
    const event = await events.get(group, letter.eventId, (topic) => topic === letter.topic);
    const eventOrigins = isCloudEvent(before.delivery.options)
      ? [origins.find(event) ?? (await origins.load(event, signals.stopping))]
      : undefined;
    await access.callbackTurnOf(before)(signals.stopping);
    const subscription = await find(); // Reads and checks again, because the waits may have been long.
    if (!(await this.#isUnchanged(letter))) return { status: "withheld" };
    // The subscription changed to CloudEvents during the waits. A CloudEvent needs its origin, and loading it would be another wait.
    if (eventOrigins === undefined && isCloudEvent(subscription.delivery.options)) return { status: "withheld" };
    const addressee = { target: toTarget(subscription), eventIds, names: access.namesFor(subscription) };
    const mayStart = (): boolean =>
      !isThrown(checkRight) && access.mayDeliver(subscription) && access.receiverOf(subscription)(letter.topic);
    const notification = toNotification(addressee, [event], eventOrigins);
    const outcome = await attempt(this.#options, notification, { ...signals, mayStart });
    if (outcome.status === "withheld") checkRight(); // A sink takes only a boolean, so this tells the caller why.
    return outcome;
  }

  /**
   * Whether the store still has the dead letter, unchanged. A replay and a rollback remove it, because the worker then delivers the event in order. So does the
   * removal of the subscription, even if a client creates the subscription again.
   */
  async #isUnchanged(letter: DeadLetter): Promise<boolean> {
    const found = await this.#options.store.deadLetters.find(letter.subscriptionId, letter.eventId);
    return found.some((one) => isSameLetter(one, letter));
  }

  #checkMayDeliver(subscription: CallbackSubscription, { topic }: DeadLetter): void {
    const { access, deliveries } = this.#options;
    if (deliveries === "paused") throw deliveriesPaused();
    if (access.mayDeliver(subscription) && access.receiverOf(subscription)(topic)) return;
    throw new BrokerError("accessDenied", { details: `the owner may no longer receive ${quote(topic)}` });
  }

  async #recordDelivered(letter: DeadLetter): Promise<number> {
    const { store, metrics } = this.#options;
    const count = await store.deadLetters.remove([letter]);
    metrics.deadLetters("delivered", count);
    const { subscriptionId, eventId } = letter;
    this.#deliveredLog.info("dead letter delivered", { subscriptionId, eventId });
    return count;
  }

  async #recordFailed(
    letter: DeadLetter,
    { reserved, reason }: { readonly reserved: DeadLetter; readonly reason: string },
  ) {
    const { store, clock } = this.#options;
    const next = { attempts: letter.attempts + 1, reason: toLetterReason(reason), failedAt: clock.now() };
    await store.deadLetters.replace(reserved, next);
  }

  /** Stores the dead letters that this node's workers have not written yet, then lists those of the order. */
  async #listDue(id: SubscriptionId, { eventId: text }: DeadLetterOrder): Promise<readonly DeadLetter[]> {
    const { store, progressWriter } = this.#options;
    await progressWriter.flush();
    if (text === undefined) return store.deadLetters.list(id, { after: undefined, limit: deadLettersMax });
    const eventId = formatEventId(parseEventId(text));
    const found = await store.deadLetters.find(id, eventId);
    if (found.length > 0) return found;
    throw new BrokerError("eventNotExist", { details: `${quote(id)} has no dead letter for the event ${quote(text)}` });
  }
}

/** The error for an order that would call a receiver while deliveries are paused. */
export function deliveriesPaused(): BrokerError {
  return new BrokerError("subscriptionHeld", { details: "deliveries are paused at this node" });
}

function anotherOrderRuns(): BrokerError {
  const details = "another order for the subscription's dead letters is running: try again when it has ended";
  return new BrokerError("subscriptionHeld", { details });
}

/** Whether a check throws. */
export function isThrown(check: () => void): boolean {
  try {
    check();
    return false;
  } catch {
    return true;
  }
}
