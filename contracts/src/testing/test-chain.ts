import type { Transport } from "viem";

/** A chain with London rules and a base fee of at most 10 wei. The fixture's accounts have funds. */
export interface TestChain {
  readonly transport: Transport;
  stop(): Promise<void>;
}
