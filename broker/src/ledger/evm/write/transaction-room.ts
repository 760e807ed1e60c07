import type { LedgerLimits } from "../../../ports/ledger.ts";
import { publishGas } from "./gas.ts";
import type { EncodedBatch } from "./publish-calldata.ts";

/** Bytes of calldata that one batch adds to its events, with what `publish` itself takes. */
const calldataOverheadBytes = 320;
/** Bytes of calldata that each further batch adds to its events. */
const batchOverheadBytes = 224;
/** However little an endpoint takes, this much is tried, in bytes of encoded events. */
const bytesMin = 1024;

/** What is configured. */
export type ConfiguredLimits = Omit<LedgerLimits, "bytesPerTopic">;

/** How much fits into one transaction: what is configured, less what the endpoint refused and what a block holds. */
export class TransactionRoom {
  readonly #configured: ConfiguredLimits;
  #limits: LedgerLimits;
  #bytesTaken: number;
  #blockGas = Number.POSITIVE_INFINITY;
  #bytesByGas = Number.POSITIVE_INFINITY;
  #topicsByGas = Number.POSITIVE_INFINITY;

  constructor(configured: ConfiguredLimits) {
    this.#configured = configured;
    this.#limits = { ...configured, bytesPerTopic: batchOverheadBytes };
    this.#bytesTaken = configured.bytesPerTransactionMax;
  }

  get limits(): LedgerLimits {
    return this.#limits;
  }

  /** Gas that one transaction may ask for. */
  get blockGas(): number {
    return this.#blockGas;
  }

  /** After a new block; its gas limit seldom changes. */
  onHead(gasLimit: number): void {
    if (gasLimit === this.#blockGas) return;
    const { bytesPerTransactionMax, eventsPerTransactionMax } = this.#configured;
    this.#blockGas = gasLimit;
    this.#bytesByGas = mostOf(bytesPerTransactionMax, (bytes) => publishGas(calldataOf(bytes, 1), 1) <= gasLimit);
    const topics = mostOf(eventsPerTransactionMax, (count) => publishGas(calldataOf(0, count), count) <= gasLimit);
    this.#topicsByGas = topics === eventsPerTransactionMax ? Number.POSITIVE_INFINITY : topics;
    this.#update();
  }

  /** After a transaction with these batches was refused for its size. */
  onTooLarge(batches: readonly EncodedBatch[]): void {
    const bytes = batches.reduce((sum, { events }) => sum + events.length, 0);
    const count = batches.reduce((sum, batch) => sum + batch.count, 0);
    // Where many topics had little each, it was what the batches add: those are halved, and others keep their room.
    const half = Math.floor((bytes + batchOverheadBytes * (batches.length - 1)) / 2);
    this.#bytesTaken = Math.min(this.#bytesTaken, count > 1 ? half : bytes - 1);
    this.#update();
  }

  #update(): void {
    const bytesPerTransactionMax = Math.max(
      Math.min(bytesMin, this.#configured.bytesPerTransactionMax),
      Math.min(this.#bytesTaken, this.#bytesByGas),
    );
    // Gas grows no faster than in proportion: where all bytes have room in one topic, and as many topics without events, so has what lies between.
    const byGas = Math.ceil(bytesPerTransactionMax / Math.max(1, this.#topicsByGas - 1));
    const bytesPerTopic = Math.max(batchOverheadBytes, byGas);
    this.#limits = { ...this.#configured, bytesPerTransactionMax, bytesPerTopic };
  }
}

function calldataOf(eventBytes: number, topics: number): number {
  return calldataOverheadBytes + batchOverheadBytes * (topics - 1) + eventBytes;
}

/** The largest number up to `max` that fits, where all below it do. */
function mostOf(max: number, fits: (count: number) => boolean): number {
  let low = 0;
  let high = max;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (fits(middle)) low = middle;
    else high = middle - 1;
  }
  return low;
}
