import { randomBytes } from "node:crypto";
import { type Hex, toHex } from "@stele/eth/node";
import type { Block } from "../blocks/block.ts";
import type { Transaction } from "../blocks/transaction.ts";
import { SUBSCRIPTIONS_MAX } from "../limits.ts";
import { invalidParams, serverError } from "../rpc-error.ts";
import { formatHeader } from "./format.ts";
import { type LogCriteria, matchBlock, toLogCriteria } from "./log-filter.ts";

type Subscription =
  | { readonly kind: "newHeads" }
  | { readonly kind: "newPendingTransactions" }
  | { readonly kind: "logs"; readonly criteria: LogCriteria };

/** Receives one notification of one subscription. */
export type SubscriptionSink = (subscription: Hex, result: unknown) => void;

const ID_BYTES = 16;

/** The subscriptions of `eth_subscribe`. Notifies of blocks, logs and pending transactions as they happen, in order. */
export class Subscriptions {
  readonly #subscriptions = new Map<Hex, Subscription>();
  readonly #sink: SubscriptionSink;

  constructor(sink: SubscriptionSink) {
    this.#sink = sink;
  }

  add(kind: unknown, filter: unknown): Hex {
    if (this.#subscriptions.size >= SUBSCRIPTIONS_MAX) {
      throw serverError(`too many subscriptions: at most ${SUBSCRIPTIONS_MAX}`);
    }
    const id = toHex(randomBytes(ID_BYTES));
    this.#subscriptions.set(id, toSubscription(kind, filter));
    return id;
  }

  remove(id: string): boolean {
    return this.#subscriptions.delete(id as Hex); // an unknown string matches no subscription
  }

  reportBlock(block: Block): void {
    for (const [id, subscription] of this.#subscriptions) {
      if (subscription.kind === "newHeads") this.#sink(id, formatHeader(block));
      if (subscription.kind === "logs") this.#reportLogs(id, block, subscription.criteria);
    }
  }

  reportPending(transaction: Transaction): void {
    for (const [id, { kind }] of this.#subscriptions) {
      if (kind === "newPendingTransactions") this.#sink(id, toHex(transaction.hash));
    }
  }

  #reportLogs(id: Hex, block: Block, criteria: LogCriteria): void {
    for (const log of matchBlock(block, criteria)) this.#sink(id, log);
  }
}

function toSubscription(kind: unknown, filter: unknown): Subscription {
  if (kind === "newHeads" || kind === "newPendingTransactions") return { kind };
  if (kind === "logs") return { kind, criteria: toLogCriteria(filter ?? {}) };
  throw invalidParams(`no "${String(kind)}" subscription in eth namespace`);
}
