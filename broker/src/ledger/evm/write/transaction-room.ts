import type { LedgerLimits } from "../../../ports/ledger.ts";
import { publishGas } from "./gas.ts";
import type { EncodedBatch } from "./publish-calldata.ts";

/** Upper bound on the bytes of calldata of a `publish` with one batch, without the events. */
const calldataOverheadBytes = 320;
/** Upper bound on the bytes of calldata that each further batch adds to its events. */
const batchOverheadBytes = 224;
/** Lower bound on a transaction's encoded events, in bytes, however little an endpoint accepts; the operator may configure less. */
const bytesMin = 1024;

/** The operator's limits. */
export type ConfiguredLimits = Omit<LedgerLimits, "bytesPerTopic">;

/** How the chain charges. */
export interface GasCharge {
  /** The factor by which the chain charges more gas than the formula. */
  readonly gasFactor?: number;
  /** The highest price of a unit of gas that the ledger offers, in wei. */
  readonly price?: bigint;
}

/**
 * How much fits into one transaction. The smallest limit decides: the configured one, the size that the endpoint accepts, the gas of a block, or the endpoint's
 * cap on fees.
 */
export class TransactionRoom {
  readonly #configured: ConfiguredLimits;
  #limits: LedgerLimits;
  #bytesTaken: number;
  #blockGas = Number.POSITIVE_INFINITY;
  /** Upper bound on the fee of a transaction of several events, in wei; undefined until an endpoint refuses a fee. */
  #feeMax: bigint | undefined;
  /** Upper bound on the gas of a transaction of several events. */
  #gasMax = Number.POSITIVE_INFINITY;
  #gasFactor = 1;
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

  /** Upper bound on the gas of one transaction. */
  get blockGas(): number {
    return this.#blockGas;
  }

  /** Call it with each new block. A gas limit of 0 means that it is unknown. */
  onHead(gasLimit: number, { gasFactor = 1, price = 0n }: GasCharge = {}): void {
    this.#blockGas = gasLimit === 0 ? Number.POSITIVE_INFINITY : gasLimit;
    const byFee = this.#feeMax === undefined || price === 0n ? this.#blockGas : Number(this.#feeMax / price);
    const gasMax = Math.min(this.#blockGas, byFee);
    if (gasMax === this.#gasMax && gasFactor === this.#gasFactor) return;
    const { bytesPerTransactionMax, eventsPerTransactionMax } = this.#configured;
    this.#gasMax = gasMax;
    this.#gasFactor = gasFactor;
    const fits = (bytes: number, count: number): boolean =>
      Math.ceil(publishGas(calldataOf(bytes, count), count) * gasFactor) <= gasMax;
    this.#bytesByGas = mostOf(bytesPerTransactionMax, (bytes) => fits(bytes, 1));
    const topics = mostOf(eventsPerTransactionMax, (count) => fits(0, count));
    this.#topicsByGas = topics === eventsPerTransactionMax ? Number.POSITIVE_INFINITY : topics;
    this.#update();
  }

  /** Call it when an endpoint refused a transaction with these batches for its size. */
  onTooLarge(batches: readonly EncodedBatch[]): void {
    const bytes = batches.reduce((sum, { events }) => sum + events.length, 0);
    const count = batches.reduce((sum, batch) => sum + batch.count, 0);
    // With many small batches, their overhead was too large: count it, so that other transactions keep their room.
    const half = Math.floor((bytes + batchOverheadBytes * (batches.length - 1)) / 2);
    this.#bytesTaken = Math.min(this.#bytesTaken, count > 1 ? half : bytes - 1);
    this.#update();
  }

  /**
   * Call it when an endpoint refused a transaction of that gas and price for its fee. Later transactions of several events offer at most half the fee. A
   * transaction of one event may offer more, since half the fee may be far below the cap.
   */
  onFeeCapped(gas: number, price: bigint): void {
    const half = (BigInt(gas) * price) / 2n;
    this.#feeMax = this.#feeMax === undefined || half < this.#feeMax ? half : this.#feeMax;
    this.onHead(this.#blockGas, { gasFactor: this.#gasFactor, price });
  }

  #update(): void {
    const bytesPerTransactionMax = Math.max(
      Math.min(bytesMin, this.#configured.bytesPerTransactionMax),
      Math.min(this.#bytesTaken, this.#bytesByGas),
    );
    // Gas is convex in bytes and topics: if all bytes fit in one topic, and `topicsByGas` empty topics fit, every mix in between fits.
    const byGas = Math.ceil(bytesPerTransactionMax / Math.max(1, this.#topicsByGas - 1));
    const bytesPerTopic = Math.max(batchOverheadBytes, byGas);
    this.#limits = { ...this.#configured, bytesPerTransactionMax, bytesPerTopic };
  }
}

function calldataOf(eventBytes: number, topics: number): number {
  return calldataOverheadBytes + batchOverheadBytes * (topics - 1) + eventBytes;
}

/** The largest number up to `max` that fits; all smaller ones fit too. */
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
