import type { Header, Rpc } from "./rpc.ts";
import type { Fees } from "./transaction.ts";

/** The base fee may rise by an eighth each block: twice of it lasts for five full blocks. */
const baseFeeFactor = 2n;

/** What a transaction offers, known without asking: the base fee comes with every head, the rest is asked at start. */
export class FeePolicy {
  readonly #rpc: Rpc;
  #gasPrice = 0n;
  #tip = 0n;
  #baseFee: bigint | undefined;

  constructor(rpc: Rpc) {
    this.#rpc = rpc;
  }

  /** Asks the endpoint for its price and tip. */
  async refresh(): Promise<void> {
    this.#gasPrice = await this.#rpc.gasPrice();
    this.#tip = this.#gasPrice === 0n ? 0n : ((await this.#rpc.tip()) ?? 0n);
  }

  onHead(head: Header): void {
    this.#baseFee = head.baseFeePerGas;
  }

  /** Legacy where blocks have no base fee; all zero where gas is free. */
  current(): Fees {
    if (this.#baseFee === undefined) return { kind: "legacy", gasPrice: this.#gasPrice };
    return {
      kind: "eip1559",
      maxFeePerGas: this.#baseFee * baseFeeFactor + this.#tip,
      maxPriorityFeePerGas: this.#tip,
    };
  }
}
