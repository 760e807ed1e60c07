import { AbortScope } from "./lib/abort-scope.ts";
import { readBody } from "./lib/read-body.ts";

/**
 * Longest valid answer to eth_getBlockByNumber, in bytes: a block with 60,000 transactions, whose hashes it lists. The client treats a longer answer as one
 * without a hash.
 */
const answerBytesMax = 4 * 1024 * 1024;
const timeoutMs = 10_000;

export interface BlockHashOptions {
  readonly signal?: AbortSignal | undefined;
}

/**
 * Reads the hash of a block from a chain node over JSON-RPC. A proof that is verified against this hash is only as trustworthy as the node.
 * @throws Error if the node does not answer within 10 s or gives no hash; the reason of `signal` once it is aborted.
 */
export async function readBlockHash(
  nodeUrl: string,
  block: number,
  { signal }: BlockHashOptions = {},
): Promise<string> {
  const { host } = new URL(nodeUrl);
  const scope = new AbortScope(signal);
  scope.abortAfter(timeoutMs, () => new Error(`${host} does not answer within ${timeoutMs / 1000} s`));
  try {
    const text = await scope.race(ask(nodeUrl, block, scope.signal));
    const hash = text === undefined ? undefined : findHash(text);
    if (hash === undefined) throw new Error(`${host} gives no hash of block ${block}`);
    return hash;
  } finally {
    scope.abort(); // Drops the rest of an answer that is too long.
    scope.close();
  }
}

/** The answer as text; undefined if it is too long. */
async function ask(nodeUrl: string, block: number, signal: AbortSignal): Promise<string | undefined> {
  const response = await fetch(nodeUrl, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "eth_getBlockByNumber",
      params: [`0x${block.toString(16)}`, false],
    }),
    // The node belongs to another party: send no cookies, and follow no redirect.
    credentials: "omit",
    redirect: "error",
    signal,
  });
  const reader = response.body?.getReader();
  // Node 20 and 22 may forget a request's signal once the response begins: the connection would stay open.
  signal.addEventListener("abort", () => void reader?.cancel().catch(() => {}), { once: true });
  const bytes = await readBody(reader, answerBytesMax);
  return bytes && new TextDecoder().decode(bytes);
}

function findHash(text: string): string | undefined {
  try {
    const { result } = Object(JSON.parse(text)) as { readonly result?: unknown }; // Of any shape.
    const { hash } = Object(result) as { readonly hash?: unknown };
    return typeof hash === "string" && /^0x[0-9a-f]{64}$/i.test(hash) ? hash.toLowerCase() : undefined;
  } catch {
    return undefined;
  }
}
