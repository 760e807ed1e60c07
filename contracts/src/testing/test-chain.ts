import type { Transport } from "viem";

/** A chain with London rules, a base fee of at most 10 wei, and funds for the fixture's accounts. */
export interface TestChain {
  readonly transport: Transport;
  stop(): Promise<void>;
}
