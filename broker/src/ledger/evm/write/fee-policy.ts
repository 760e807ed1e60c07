import type { Header, Rpc } from "../endpoint/rpc.ts";
import type { Fees } from "./transaction.ts";

/** Which fees a group offers: `auto` is EIP-1559 where blocks have a base fee, and legacy where not. */
export type FeeMode = "auto" | "eip1559" | "legacy" | "zero";

export interface FeeSettings {
  readonly mode: FeeMode;
  /** The most that is ever offered for a unit of gas, in wei. */
  readonly max: bigint | undefined;
}

/** The base fee may rise by an eighth each block: twice of it lasts for five full blocks. */
const baseFeeFactor = 2n;
/** Nodes take another transaction in the place of one that waits only for clearly more: geth asks for a tenth, others for up to an eighth. */
const bumpPercent = 125n;
const enoughPercent = 113n;

/** What a transaction offers, known without asking: the base fee comes with every head, the rest is asked at start and when it falls short. */
export class FeePolicy {
  readonly #rpc: Rpc;
  readonly #settings: FeeSettings;
  #gasPrice = 0n;
  #tip = 0n;
  #baseFee: bigint | undefined;

  constructor(rpc: Rpc, settings: FeeSettings) {
    this.#rpc = rpc;
    this.#settings = settings;
  }

  /** Asks the endpoint for its price and tip. */
  async refresh(): Promise<void> {
    if (this.#settings.mode === "zero") return;
    this.#gasPrice = await this.#rpc.gasPrice();
    this.#tip = this.#gasPrice === 0n ? 0n : ((await this.#rpc.tip()) ?? 0n);
  }

  onHead(head: Header): void {
    this.#baseFee = head.baseFeePerGas;
  }

  /** What the chain asks now, as far as the cap allows. */
  current(): Fees {
    const base = this.#baseFee ?? 0n;
    if (this.#isLegacy) {
      const price = this.#gasPrice > base ? this.#gasPrice : base;
      return { kind: "legacy", gasPrice: this.#capped(this.#settings.mode === "zero" ? 0n : price) };
    }
    const maxFeePerGas = this.#capped(this.#settings.mode === "zero" ? 0n : base * baseFeeFactor + this.#tip);
    return {
      kind: "eip1559",
      maxFeePerGas,
      maxPriorityFeePerGas: smaller(this.#tip, maxFeePerGas),
    };
  }

  /**
   * What a transaction offers that is to take the place of one that offered `old`: a quarter more, and at least what the chain asks now.
   * Undefined when the cap leaves too little for the node to take it.
   */
  raised(old: Fees): Fees | undefined {
    const now = this.current();
    if (now.kind === "legacy" || old.kind === "legacy") {
      const price = larger(raise(priceOf(old)), priceOf(now));
      return this.#ifEnough({ kind: "legacy", gasPrice: this.#capped(price) }, old);
    }
    const maxFeePerGas = this.#capped(larger(raise(old.maxFeePerGas), now.maxFeePerGas));
    const tip = larger(raise(old.maxPriorityFeePerGas), now.maxPriorityFeePerGas);
    return this.#ifEnough({ kind: "eip1559", maxFeePerGas, maxPriorityFeePerGas: smaller(tip, maxFeePerGas) }, old);
  }

  /** Whether `fees` pay for what the next block asks. */
  covers(fees: Fees): boolean {
    return priceOf(fees) >= (this.#baseFee ?? this.#gasPrice);
  }

  get #isLegacy(): boolean {
    return this.#settings.mode === "legacy" || (this.#baseFee === undefined && this.#settings.mode !== "eip1559");
  }

  #capped(price: bigint): bigint {
    return smaller(price, this.#settings.max ?? price);
  }

  #ifEnough(fees: Fees, old: Fees): Fees | undefined {
    return priceOf(fees) * 100n >= priceOf(old) * enoughPercent && priceOf(fees) > priceOf(old) ? fees : undefined;
  }
}

function priceOf(fees: Fees): bigint {
  return fees.kind === "legacy" ? fees.gasPrice : fees.maxFeePerGas;
}

function raise(price: bigint): bigint {
  return (price * bumpPercent + 99n) / 100n;
}

function larger(left: bigint, right: bigint): bigint {
  return left > right ? left : right;
}

function smaller(left: bigint, right: bigint): bigint {
  return left < right ? left : right;
}
