import {
  type Chain,
  createPublicClient,
  createWalletClient,
  custom,
  type EIP1193RequestFn,
  type Hex,
  http,
  type Transport,
} from "viem";
import { privateKeyToAccount } from "viem/accounts";
import type { EmbeddedChain } from "../embedded-chain.ts";

/** The first of the well-known accounts that anvil funds by itself. */
export const SIGNER = privateKeyToAccount("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80");
/** An account that nobody funds. */
export const PAUPER = privateKeyToAccount(`0x${"77".repeat(32)}`);
export const CHAIN_ID = 1337;

export const TEST_CHAIN: Chain = {
  id: CHAIN_ID,
  name: "test",
  nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
  rpcUrls: { default: { http: [] } },
};

const POLLING_MS = 10;

/** Fees that both the embedded chain and anvil accept. */
export const FEES = { maxFeePerGas: 1_000_000_000n, maxPriorityFeePerGas: 0n } as const;

export type TestClient = ReturnType<typeof createTestClient>;

/** viem's clients over a transport, and the bare request. */
export function createTestClient(transport: Transport) {
  const reader = createPublicClient({ chain: TEST_CHAIN, transport, pollingInterval: POLLING_MS, cacheTime: 0 });
  const writer = createWalletClient({ chain: TEST_CHAIN, transport, account: SIGNER });
  // viem types `request` by method; tests ask for wrong ones too.
  const request = reader.request as unknown as (args: { method: string; params?: unknown }) => Promise<unknown>;
  return { reader, writer, request };
}

export function embeddedTransport(request: EmbeddedChain["request"]): Transport {
  // No retries, so that a test gets the refusal itself.
  return custom({ request: request as EIP1193RequestFn }, { retryCount: 0 });
}

export function httpTransport(url: string): Transport {
  return http(url, { retryCount: 0 });
}

/**
 * Sends a transaction and waits for its receipt. Does not check for a replacement: viem misses a block that comes during that check, and no further block
 * follows without a transaction.
 */
export async function sendAndWait(
  { reader, writer }: TestClient,
  transaction: { readonly to?: Hex; readonly data?: Hex; readonly value?: bigint; readonly gas?: bigint },
) {
  const hash = await writer.sendTransaction({ ...FEES, ...transaction });
  return reader.waitForTransactionReceipt({ hash, checkReplacement: false });
}
