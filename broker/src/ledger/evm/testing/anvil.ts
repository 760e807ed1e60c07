import * as launcher from "../../../../../tools/anvil.mjs";
import type { EvmProvider } from "../endpoint/rpc.ts";

/** A running anvil. Unless flags say otherwise, it makes a block for each transaction. */
export interface Anvil {
  readonly provider: EvmProvider;
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts anvil with a gas limit of 1,000,000,000 for each block. */
export async function startAnvil(flags: readonly string[] = []): Promise<Anvil> {
  const { url, stop } = await launcher.startAnvil(["--gas-limit", "1000000000", ...flags]);
  return { url, provider: createHttpProvider(url), stop };
}

/** The smallest EIP-1193 provider: one HTTP POST for each request, no notifications. */
export function createHttpProvider(url: string): EvmProvider {
  return {
    request: async ({ method, params = [] }) => {
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
      const response = await fetch(url, { method: "POST", body, headers: { "content-type": "application/json" } });
      const answer = (await response.json()) as { result?: unknown; error?: { code: number; message: string } }; // JSON-RPC 2.0.
      if (answer.error === undefined) return answer.result;
      throw Object.assign(new Error(answer.error.message), { code: answer.error.code });
    },
  };
}
