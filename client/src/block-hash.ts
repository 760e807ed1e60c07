/** Longest valid answer to eth_getBlockByNumber. A longer one counts as an answer without a hash. */
const answerCharactersMax = 65_536;
const timeoutMs = 10_000;

export interface BlockHashOptions {
  readonly signal?: AbortSignal | undefined;
}

/**
 * Reads the hash of a block from a chain node by JSON-RPC. A proof that is verified against this hash is only as trustworthy as the node.
 * @throws Error if the node does not answer within 10 s or gives no hash. If `signal` aborts, throws its reason.
 */
export async function readBlockHash(
  nodeUrl: string,
  block: number,
  { signal }: BlockHashOptions = {},
): Promise<string> {
  const ended = AbortSignal.timeout(timeoutMs);
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
    signal: signal === undefined ? ended : AbortSignal.any([ended, signal]),
  });
  const text = await response.text();
  const hash = text.length > answerCharactersMax ? undefined : findHash(text);
  if (hash === undefined) throw new Error(`${new URL(nodeUrl).host} gives no hash of block ${block}`);
  return hash;
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
