import type { Transport } from "viem";

/** A chain with London rules and a gas price of zero, on which any account can send transactions. */
export interface TestChain {
  readonly transport: Transport;
  stop(): Promise<void>;
}
