import { startEmbeddedChain } from "../embedded-chain.ts";
import { ProviderRpcError } from "../rpc-error.ts";
import { BASE_FEE_PER_GAS, BLOCK_GAS_LIMIT_DEFAULT } from "../limits.ts";
import { startAnvil } from "./anvil.ts";
import { CHAIN_ID, createTestClient, embeddedTransport, httpTransport, SIGNER, type TestClient } from "./client.ts";

/** An answer as it stands on the wire. */
export interface RawAnswer {
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** A chain that the yardstick is held against. */
export interface Backend extends AsyncDisposable {
  readonly client: TestClient;
  ask(method: string, params?: unknown): Promise<RawAnswer>;
}

export const BACKENDS: readonly { readonly name: string; start(): Promise<Backend> }[] = [
  { name: "embedded chain", start: startEmbedded },
  { name: "anvil", start: startAnvilBackend },
];

export async function startEmbedded(): Promise<Backend> {
  const chain = await startEmbeddedChain({ file: ":memory:", chainId: CHAIN_ID, genesisAccounts: [SIGNER.address] });
  return {
    client: createTestClient(embeddedTransport(chain)),
    ask: (method, params) => chain.request({ method, params }).then((result) => ({ result }), toRawError),
    [Symbol.asyncDispose]: () => chain.stop(),
  };
}

function toRawError(error: unknown): RawAnswer {
  if (!(error instanceof ProviderRpcError)) throw error;
  return { error: { code: error.code, message: error.message, data: error.data } };
}

async function startAnvilBackend(): Promise<Backend> {
  const fees = [
    "--base-fee",
    String(BASE_FEE_PER_GAS),
    "--gas-limit",
    String(BLOCK_GAS_LIMIT_DEFAULT),
    "--no-priority-fee",
  ];
  const anvil = await startAnvil(["--hardfork", "cancun", "--chain-id", String(CHAIN_ID), ...fees]);
  return {
    client: createTestClient(httpTransport(anvil.url)),
    ask: (method, params) => askHttp(anvil.url, method, params ?? []),
    [Symbol.asyncDispose]: () => anvil[Symbol.asyncDispose](),
  };
}

async function askHttp(url: string, method: string, params: unknown): Promise<RawAnswer> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
  return (await response.json()) as RawAnswer; // JSON-RPC answers have this shape
}
