import { BrokerError, toBrokerError } from "@stele/wire";
import type { Caller } from "../../engine/access/caller.ts";
import type { Broker, PublishOutcome, TransactionOutcome } from "../../engine/broker.ts";
import type { EndReason } from "../../engine/session/peer.ts";
import { createDeferred } from "../../lib/deferred.ts";
import type { Outbox } from "../shared/connection/outbox.ts";
import { Submitter } from "../shared/connection/submitter.ts";
import { TopicOpener } from "../shared/connection/topic-opener.ts";
import { Answers } from "./answers.ts";
import { type ClientFrame, findHeader, type Headers, type Version } from "./codec/frame.ts";
import { toPublishCall } from "./mapping.ts";
import { findReceipt, requireName } from "./names.ts";
import type { StompSettings } from "./settings.ts";
import type { Subscription } from "./subscription.ts";
import { Subscriptions } from "./subscriptions.ts";
import { type Settlement, Transactions } from "./transactions.ts";

export interface DialogueParts {
  readonly broker: Pick<Broker, "attach" | "submit" | "submitAll" | "whenRoom" | "exist" | "open">;
  readonly caller: Caller;
  readonly version: Version;
  readonly settings: StompSettings;
  readonly outbox: Outbox;
  readonly newId: () => string;
  /** Sends a RECEIPT. */
  readonly reply: (headers: Headers) => void;
  /** Refuses the frame that asks for this receipt. Called when its answer is due. */
  readonly refuse: (error: unknown, receipt: string | undefined) => void;
  readonly onSubscriptionEnded: (why: EndReason) => void;
  /** Called when answers may have been sent, so that {@link Dialogue.keptBytes} may be less. */
  readonly onAnswered: () => void;
  /** Called when the client has left and all its answers have been sent. */
  readonly leave: () => void;
}

/** Serves the frames of one connection once it is open. */
export class Dialogue {
  readonly #parts: DialogueParts;
  readonly #answers: Answers;
  readonly #transactions = new Transactions();
  readonly #subscriptions: Subscriptions;
  readonly #submitter: Submitter;
  /** Whether the client has left. */
  #isLeaving = false;

  constructor(parts: DialogueParts) {
    this.#parts = parts;
    const { broker, caller, settings, newId, onSubscriptionEnded, onAnswered } = parts;
    this.#answers = new Answers(onAnswered);
    const opener = new TopicOpener({ broker, caller, isAutomatic: settings.opensTopics });
    this.#submitter = new Submitter({ broker, caller, opener });
    this.#subscriptions = new Subscriptions({
      ...parts,
      newKey: newId,
      onEnded: (_, why) => onSubscriptionEnded(why),
      onSuspended: (subscription) => this.refuse(toSuspension(subscription), undefined),
    });
  }

  /** Whether it still has to answer frames. */
  get owesAnswers(): boolean {
    return this.#answers.areAwaited;
  }

  /** Received bytes that the dialogue keeps. */
  get keptBytes(): number {
    return (
      this.#transactions.bytes + this.#answers.bytes + this.#subscriptions.keptBytes + this.#submitter.waitingBytes
    );
  }

  /**
   * Serves a frame. If the result is a promise, take nothing more until it settles. @throws BrokerError if the frame cannot be served; the promise
   * may reject likewise.
   */
  take(frame: ClientFrame): Promise<void> | undefined {
    if (this.#isLeaving) return undefined; // clients must not send anything after DISCONNECT
    const serving = this.#serve(frame);
    return serving === undefined ? this.#answers.room() : serving.then(() => this.#answers.room());
  }

  /** Refuses a frame after the answers to earlier frames. */
  refuse(error: unknown, receipt: string | undefined): void {
    this.#answers.expect(receipt)(() => this.#parts.refuse(error, receipt));
  }

  /** Call it when the client can receive more. */
  wake(): void {
    this.#subscriptions.wakeAll();
  }

  /** Call it when the client sends no more. Once its answers are sent, the connection ends. */
  leave(): void {
    this.#isLeaving = true;
    this.#subscriptions.pauseAll(); // the client may be gone: nobody would read an event that the system takes
    this.#answers.expect()(() => this.#parts.leave());
  }

  /** Call it when the connection has ended. */
  close(): void {
    this.#isLeaving = true;
    this.#submitter.close();
    void this.#subscriptions.detachAll();
  }

  #serve(frame: ClientFrame): Promise<void> | undefined {
    const { headers } = frame;
    const receipt = findReceipt(headers);
    switch (frame.command) {
      case "SEND":
        return this.#send(frame, receipt);
      case "SUBSCRIBE":
        return this.#subscribe(frame);
      case "UNSUBSCRIBE":
        return this.#unsubscribe(frame);
      case "ACK":
      case "NACK":
        this.#settle(frame, receipt);
        return undefined;
      case "BEGIN":
        this.#transactions.begin(requireName(headers, "transaction"));
        break;
      case "ABORT":
        this.#transactions.end(requireName(headers, "transaction"));
        break;
      case "COMMIT":
        return this.#commit(frame, receipt);
      case "DISCONNECT":
        this.#disconnect(receipt);
        return undefined;
      default:
        throw new Error(`${frame.command} was not handled by the connection`);
    }
    this.#receipt(receipt);
    return undefined;
  }

  /** Sends a RECEIPT in turn, if the client asked for one. */
  #receipt(receipt: string | undefined): void {
    if (receipt !== undefined) this.#answers.expect(receipt)(() => this.#reply(receipt, []));
  }

  #confirm(receipt: string | undefined): void {
    if (receipt !== undefined) this.#reply(receipt, []);
  }

  #reply(receipt: string, more: Headers): void {
    this.#parts.reply([["receipt-id", receipt], ...more]);
  }

  #send(frame: ClientFrame, receipt: string | undefined): Promise<void> | undefined {
    const { headers } = frame;
    const call = toPublishCall(frame, this.#parts.settings.extensionPrefix);
    const transaction = findHeader(headers, "transaction");
    if (transaction !== undefined) {
      this.#transactions.addSend(transaction, call);
      this.#receipt(receipt); // the event is durable only after COMMIT, which has a RECEIPT of its own
      return undefined;
    }
    const settle = this.#answers.expect(receipt);
    return this.#submitter.submit(call, (outcome) => settle(() => this.#answerSend(outcome, receipt)));
  }

  #answerSend(outcome: PublishOutcome, receipt: string | undefined): void {
    if (outcome.status !== "SUCCESS") this.#parts.refuse(toRefusal(outcome), receipt);
    else if (receipt !== undefined) this.#reply(receipt, [["eventId", outcome.eventId]]);
  }

  async #subscribe(frame: ClientFrame): Promise<void> {
    const receipt = this.#receiptOf(frame);
    const subscription = await this.#subscriptions.subscribe(frame);
    if (this.#isLeaving) {
      void this.#subscriptions.detachAll(); // the connection has ended meanwhile
      return;
    }
    this.#answers.expect(receipt)(() => {
      if (receipt !== undefined) this.#reply(receipt, [["subscription-id", subscription.parts.key]]);
      subscription.open();
    });
  }

  async #unsubscribe(frame: ClientFrame): Promise<void> {
    const receipt = this.#receiptOf(frame);
    await this.#subscriptions.unsubscribe(frame);
    this.#receipt(receipt);
  }

  /** The receipt of a frame. With implicit receipts it falls back to the frame's `id`: some clients wait for a RECEIPT that they did not ask for. */
  #receiptOf({ headers }: ClientFrame): string | undefined {
    const implicit = this.#parts.settings.hasImplicitReceipts ? findHeader(headers, "id") : undefined;
    return findReceipt(headers) ?? implicit;
  }

  /**
   * Sends the RECEIPT once the store has the client's ACKs. The client may resume its subscriptions at another node, which reads their places from the store.
   */
  #disconnect(receipt: string | undefined): void {
    this.#isLeaving = true;
    this.#subscriptions.pauseAll(); // earlier answers may be late, and the client may not wait for them
    const answer = this.#answers.expect(receipt);
    const leave = (): void => {
      this.#confirm(receipt);
      this.#parts.leave();
    };
    if (receipt === undefined) answer(leave);
    else void this.#subscriptions.detachAllInTurn().then(() => answer(leave));
  }

  #settle(frame: ClientFrame, receipt: string | undefined): void {
    const transaction = findHeader(frame.headers, "transaction");
    const settlement = this.#toSettlement(frame);
    if (transaction !== undefined) this.#transactions.addSettlement(transaction, settlement);
    const answer = this.#answers.expect(receipt);
    if (transaction === undefined) settlement.settle(); // may suspend the subscription; the ERROR about that follows this answer
    answer(() => this.#confirm(receipt));
  }

  #toSettlement({ command, headers }: ClientFrame): Settlement {
    const found = this.#subscriptions.find(headers);
    return {
      settle: () =>
        command === "ACK" ? found?.subscription.acknowledge(found.name) : found?.subscription.reject(found.name),
      linger: (until) => found?.subscription.linger(until),
    };
  }

  /**
   * Commits all or nothing. Acknowledgements count once the events are durable, even if the connection has ended meanwhile. Serves no other frame until then,
   * to keep the order.
   */
  #commit({ headers }: ClientFrame, receipt: string | undefined): Promise<void> | undefined {
    const { sends, settlements } = this.#transactions.end(requireName(headers, "transaction"));
    const answer = this.#answers.expect(receipt);
    const settled = createDeferred<void>();
    const onSettled = (outcome: Pick<TransactionOutcome, "status">): void => {
      const isCommitted = outcome.status === "SUCCESS";
      if (isCommitted) for (const settlement of settlements) settlement.settle();
      settled.resolve();
      answer(() => (isCommitted ? this.#confirm(receipt) : this.#parts.refuse(toRefusal(outcome), receipt)));
    };
    if (sends.length > 0) {
      for (const { linger } of settlements) linger(settled.promise);
      return this.#submitter.submitAll(sends, onSettled);
    }
    onSettled({ status: "SUCCESS" });
    return undefined;
  }
}

/** The error for a SEND or transaction that was not published, or whose outcome is unknown. */
function toRefusal(outcome: { readonly status: string; readonly error?: unknown }): BrokerError {
  return outcome.status === "REFUSED" ? toBrokerError(outcome.error) : new BrokerError("transactionTimeout");
}

function toSuspension({ parts: { key, isDurable } }: Subscription): BrokerError {
  const state = isDurable ? "is suspended until a SUBSCRIBE resumes it" : "has ended and cannot be resumed";
  const details = `the subscription ${key} ${state}, since its client rejected one event too often`;
  return new BrokerError("overQuota", { details });
}
