import type { Transport } from "viem";

/** A chain with London rules on which the accounts of the fixture have funds, at a base fee of 10 wei at most. */
export interface TestChain {
  readonly transport: Transport;
  stop(): Promise<void>;
}
