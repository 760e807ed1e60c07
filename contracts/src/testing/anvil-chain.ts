import { http } from "viem";
import { startAnvil } from "../../../tools/anvil.mjs";
import type { TestChain } from "./test-chain.ts";

/** Gas limit of a block: enough for batches of 1,000 events. Private chains set such limits. */
const blockGasLimit = 1_000_000_000;

/** Starts anvil with London rules and free gas. */
export async function startAnvilChain(extraFlags: readonly string[] = []): Promise<TestChain> {
  const rules = ["--hardfork", "london", "--base-fee", "0", "--gas-price", "0", "--gas-limit", String(blockGasLimit)];
  const { url, stop } = await startAnvil([...rules, ...extraFlags]);
  return { transport: http(url), stop };
}
