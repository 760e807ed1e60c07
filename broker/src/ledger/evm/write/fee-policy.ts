import type { Fees } from "@stele/eth/node";
import type { Clock } from "../../../ports/clock.ts";
import type { Header, Rpc } from "../endpoint/rpc.ts";

/** Which fees a group offers: `auto` is EIP-1559 if blocks have a base fee, otherwise legacy. */
export type FeeMode = "auto" | "eip1559" | "legacy" | "zero";

export interface FeeSettings {
  readonly mode: FeeMode;
  /** Upper bound on the price of a unit of gas, in wei. */
  readonly max: bigint | undefined;
  readonly clock: Clock;
}

/** Age at which the endpoint's gas price and tip are read again when a new block arrives, in milliseconds. */
const pricesAgeMsMax = 15_000;
/** The base fee may rise by an eighth each block: twice the current base fee suffices for five full blocks. */
const baseFeeFactor = 2n;
/** The price of a replacement, in percent of the old price. */
const bumpPercent = 125n;
/** The lowest price of a replacement that all chain nodes accept, in percent of the old price: geth demands a tenth more, others up to an eighth. */
const enoughPercent = 113n;
/**
 * Upper bound on a replacement's price, as a multiple of the endpoint's price, if no maximum is configured. An endpoint that refuses every price, or a
 * chain that never includes the transaction, must not empty the account.
 */
const raiseFactorMax = 16n;

/** The price that a transaction offers, known without a request. Each head has the base fee; the policy reads gas price and tip again when they are old. */
export class FeePolicy {
  readonly #rpc: Rpc;
  readonly #settings: FeeSettings;
  #gasPrice = 0n;
  #tip = 0n;
  #baseFee: bigint | undefined;
  /** When gas price and tip were last requested, on the monotonic clock. Initially the time of creation, since the start requests them itself. */
  #askedAt: number;

  constructor(rpc: Rpc, settings: FeeSettings) {
    this.#rpc = rpc;
    this.#settings = settings;
    this.#askedAt = settings.clock.monotonic();
  }

  /** Reads the endpoint's gas price and tip, except where gas is free. Call it after the first head. @throws RpcFailure. */
  async refresh(): Promise<void> {
    const { mode, clock } = this.#settings;
    if (mode === "zero") return;
    this.#askedAt = clock.monotonic();
    const gasPrice = await this.#rpc.gasPrice();
    // The gas price of a chain with a base fee contains the tip.
    const inPrice = larger(gasPrice - (this.#baseFee ?? gasPrice), 0n);
    this.#tip = gasPrice === 0n ? 0n : ((await this.#rpc.tip()) ?? inPrice);
    this.#gasPrice = gasPrice;
  }

  /** Records the head's base fee. Reads old prices again in the background; if the endpoint fails, the old prices stay until a later head. */
  onHead(head: Header): void {
    const { mode, clock } = this.#settings;
    this.#baseFee = head.baseFeePerGas;
    const isOld = clock.monotonic() - this.#askedAt >= pricesAgeMsMax;
    if (isOld && mode !== "zero") void this.refresh().catch(() => {}); // The endpoint set logs a lost endpoint.
  }

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
   * The price of a replacement for a transaction that offered `old`: a quarter more, and at least the current price. Undefined if the cap allows
   * too little for a chain node to accept the replacement, or if gas is free.
   */
  raised(old: Fees): Fees | undefined {
    const now = this.current();
    const max = this.#settings.max ?? larger(priceOf(now), this.#gasPrice) * raiseFactorMax;
    const price = smaller(larger(raise(priceOf(old)), priceOf(now)), max);
    if (now.kind === "legacy" || old.kind === "legacy") return this.#ifEnough({ kind: "legacy", gasPrice: price }, old);
    // Geth also wants a higher tip, even in place of a tip of zero.
    const tip = larger(larger(raise(old.maxPriorityFeePerGas), 1n), now.maxPriorityFeePerGas);
    return this.#ifEnough({ kind: "eip1559", maxFeePerGas: price, maxPriorityFeePerGas: smaller(tip, price) }, old);
  }

  /** Whether `fees` cover the newest base fee or, on a chain without base fees, the endpoint's gas price. */
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

/** The highest price of a unit of gas, in wei. */
export function priceOf(fees: Fees): bigint {
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
