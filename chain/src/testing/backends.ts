import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type EmbeddedChain, type EmbeddedChainOptions, startEmbeddedChain } from "../embedded-chain.ts";
import { ProviderRpcError } from "../rpc-error.ts";
import { BASE_FEE_PER_GAS, BLOCK_GAS_LIMIT_DEFAULT } from "../limits.ts";
import { startAnvil } from "../../../tools/anvil.mjs";
import { CHAIN_ID, createTestClient, embeddedTransport, httpTransport, SIGNER, type TestClient } from "./client.ts";

/** An answer of JSON-RPC. */
export interface RawAnswer {
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** A chain that the yardstick tests run against. */
export interface Backend extends AsyncDisposable {
  readonly client: TestClient;
  ask(method: string, params?: unknown): Promise<RawAnswer>;
}

interface BackendEntry {
  readonly name: string;
  /** Whether the backend returns transactions that wait for a block. */
  readonly hasPool: boolean;
  start(): Promise<Backend>;
}

export const BACKENDS: readonly BackendEntry[] = [
  { name: "embedded chain", hasPool: true, start: () => startEmbedded() },
  { name: "reader of the embedded chain", hasPool: false, start: startReader },
  { name: "anvil", hasPool: true, start: startAnvilBackend },
];

export async function startEmbedded(options: Pick<EmbeddedChainOptions, "callTimeMsMax"> = {}): Promise<Backend> {
  const genesisAccounts = [SIGNER.address];
  const chain = await startEmbeddedChain({ ...options, file: ":memory:", chainId: CHAIN_ID, genesisAccounts });
  return {
    client: createTestClient(embeddedTransport((request) => chain.request(request))),
    ask: (method, params) => chain.request({ method, params }).then((result) => ({ result }), toRawError),
    [Symbol.asyncDispose]: () => chain.stop(),
  };
}

async function startReader(): Promise<Backend> {
  const folder = mkdtempSync(join(tmpdir(), "stele-reader-"));
  const file = join(folder, "chain.db");
  const chain = await startEmbeddedChain({ file, chainId: CHAIN_ID, genesisAccounts: [SIGNER.address] });
  return {
    client: createTestClient(embeddedTransport((request) => readOrRequest(chain, request))),
    ask: (method, params) => readOrRequest(chain, { method, params }).then((result) => ({ result }), toRawError),
    [Symbol.asyncDispose]: async () => {
      await chain.stop();
      rmSync(folder, { recursive: true });
    },
  };
}

/** Asks the reader, except for methods that only the owner may call. */
async function readOrRequest(chain: EmbeddedChain, request: { method: string; params?: unknown }): Promise<unknown> {
  if (/sendRaw|Filter|ubscribe/.test(request.method)) return chain.request(request);
  return JSON.parse(await chain.reader.read(request));
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
