import type { LedgerLimits } from "../../ports/ledger.ts";
import { publishGas } from "./gas.ts";
import type { EncodedBatch } from "./publish-calldata.ts";

/** Bytes of calldata that one batch adds to its events, with what `publish` itself takes. */
const calldataOverheadBytes = 320;
/** Bytes of calldata that each further batch adds to its events. */
const batchOverheadBytes = 224;
/** However little an endpoint takes, this much is tried, in bytes of encoded events. */
const bytesMin = 1024;

/** How much fits into one transaction: what is configured, less what the endpoint refused and what a block holds. */
export class TransactionRoom {
  readonly #configured: LedgerLimits;
  #limits: LedgerLimits;
  #bytesTaken: number;
  #blockGas = Number.POSITIVE_INFINITY;
  #bytesByGas = Number.POSITIVE_INFINITY;

  constructor(configured: LedgerLimits) {
    this.#configured = configured;
    this.#limits = configured;
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
    this.#blockGas = gasLimit;
    this.#bytesByGas = bytesWithin(gasLimit, this.#configured.bytesPerTransactionMax);
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
    this.#limits = { ...this.#configured, bytesPerTransactionMax };
  }
}

/** Most bytes of events whose `publish` takes no more than `gas`, up to `max`. */
function bytesWithin(gas: number, max: number): number {
  let low = 0;
  let high = max;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (publishGas(middle + calldataOverheadBytes, 1) <= gas) low = middle;
    else high = middle - 1;
  }
  return low;
}
