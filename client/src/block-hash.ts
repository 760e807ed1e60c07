/** A node's answer to one call is short; whatever is longer is none. */
const answerCharactersMax = 65_536;
const timeoutMs = 10_000;

export interface BlockHashOptions {
  readonly signal?: AbortSignal | undefined;
}

/**
 * The hash of a block as a node of the chain gives it by JSON-RPC. A proof that is verified against it is worth as much as that node.
 * @throws Error that says why there is none.
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
    // It is another party: it gets no cookie, and sends nobody elsewhere.
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
