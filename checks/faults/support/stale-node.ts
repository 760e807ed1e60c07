import { type Passage, pass, type Treatment } from "./chain-proxy.ts";
import { answer, filterOf, type NodeAnswer } from "./chain-treatments.ts";

type Method = (passage: Passage, head: number) => Promise<NodeAnswer>;

/**
 * Answers as a chain node that is `blocksBehind` blocks behind: it has no newer blocks, its `latest` is an earlier block, a search beyond its head
 * finds nothing, and its pool is empty.
 */
export function staleNode(blocksBehind: number): Treatment {
  return async (passage) => {
    const [call] = passage.calls;
    const method = methods[call?.method ?? ""];
    if (method === undefined) return pass(passage);
    const head = Number(await passage.ask("eth_blockNumber", [])) - blocksBehind;
    return answer(passage, await method(passage, Math.max(0, head)));
  };
}

const methods: Readonly<Record<string, Method>> = {
  eth_blockNumber: async (_passage, head) => ({ result: toHex(head) }),
  eth_getBlockByNumber: async (passage, head) => {
    const { method, params } = callOf(passage);
    const number = isOfHead(params[0]) ? toHex(head) : params[0];
    return { result: Number(number) > head ? null : await passage.ask(method, [number, params[1]]) };
  },
  eth_getBlockByHash: async (passage, head) => withinHead(await askSame(passage), { head, field: "number" }),
  eth_getTransactionReceipt: async (passage, head) =>
    withinHead(await askSame(passage), { head, field: "blockNumber" }),
  eth_getTransactionByHash: async (passage, head) => withinHead(await askSame(passage), { head, field: "blockNumber" }),
  eth_getTransactionCount: atHead,
  eth_call: atHead,
  eth_getLogs: async (passage, head) => {
    const { blockHash, fromBlock, toBlock, ...rest } = filterOf(passage);
    if (blockHash !== undefined) {
      const { result } = withinHead(await passage.ask("eth_getBlockByHash", [blockHash, false]), {
        head,
        field: "number",
      });
      if (result === null) return { error: { code: -32_000, message: "unknown block" } };
      return { result: await askSame(passage) };
    }
    const last = isOfHead(toBlock) ? head : Math.min(head, Number(toBlock));
    if (Number(fromBlock) > last) return { result: [] };
    return { result: await passage.ask("eth_getLogs", [{ ...rest, fromBlock, toBlock: toHex(last) }]) };
  },
};

async function atHead(passage: Passage, head: number): Promise<NodeAnswer> {
  const { method, params } = callOf(passage);
  const block = isOfHead(params[1]) ? toHex(head) : params[1];
  return { result: await passage.ask(method, [params[0], block]) };
}

function askSame(passage: Passage): Promise<unknown> {
  const { method, params } = callOf(passage);
  return passage.ask(method, params);
}

function callOf({ calls }: Passage): { readonly method: string; readonly params: readonly unknown[] } {
  const [call] = calls;
  if (call === undefined) throw new Error("an empty batch");
  return call;
}

/** The result, if it belongs to a block that the stale chain node has; else null. */
function withinHead(
  found: unknown,
  { head, field }: { readonly head: number; readonly field: "number" | "blockNumber" },
): { readonly result: unknown } {
  const block = (found as Readonly<Record<string, unknown>> | null)?.[field]; // A block, a receipt or a transaction.
  return { result: typeof block === "string" && Number(block) <= head ? found : null };
}

function isOfHead(block: unknown): boolean {
  return block === undefined || block === "latest" || block === "pending";
}

function toHex(number: number): string {
  return `0x${number.toString(16)}`;
}
