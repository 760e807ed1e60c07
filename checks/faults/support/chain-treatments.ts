import type { Random } from "../../harness/random.ts";
import { pass, type Passage, type Treatment } from "./chain-proxy.ts";

/** Forwards requests, but sends no answer. */
export const swallowAnswers: Treatment = async ({ forward }) => void (await forward());

/** Forwards nothing and answers nothing. */
export const hangRequests: Treatment = () => {};

/** Answers 429, as hosted endpoints do for too many requests. */
export const refuseForRate: Treatment = ({ response }) => {
  response.writeHead(429, { "retry-after": "1" });
  response.end(JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: 429, message: "Too Many Requests" } }));
};

/** Forwards this many requests per second and answers 429 to the others. */
export function limitRate(requestsMax: number): Treatment {
  let second = 0;
  let count = 0;
  return (passage) => {
    const now = Math.floor(performance.now() / 1000);
    count = now === second ? count + 1 : 1;
    second = now;
    return count > requestsMax ? refuseForRate(passage) : pass(passage);
  };
}

/** Forwards the request, sends half of the answer, and resets the connection. */
export const cutAnswers: Treatment = async ({ forward, response }) => {
  const answer = await forward();
  response.setHeader("content-length", answer.length);
  response.write(answer.subarray(0, answer.length / 2), () => response.socket?.resetAndDestroy());
};

/** Resets the connection without forwarding the request. */
export const cutRequests: Treatment = ({ response }) => void response.socket?.resetAndDestroy();

/** Applies `treatment` to this fraction of the requests, and passes the others. */
export function sometimes(
  fraction: number,
  { treatment, random }: { treatment: Treatment; random: Random },
): Treatment {
  return (passage) => (random.fraction() < fraction ? treatment(passage) : pass(passage));
}

/** Applies the treatment of the request's method; in a batch, the first call's method decides. Passes other requests. */
export function treatMethods(treatments: Readonly<Record<string, Treatment>>): Treatment {
  return (passage) => (treatments[passage.calls[0]?.method ?? ""] ?? pass)(passage);
}

/** Refuses log searches over more than this many blocks, as hosted endpoints do. */
export function refuseRangesOver(blocksMax: number): Treatment {
  return treatMethods({
    eth_getLogs: (passage) => {
      const { fromBlock, toBlock } = filterOf(passage);
      const blocks = Number(toBlock) - Number(fromBlock) + 1;
      if (!(blocks > blocksMax)) return pass(passage);
      return answer(passage, { error: { code: -32_005, message: `query exceeds max block range ${blocksMax}` } });
    },
  });
}

/** Answers every request with a JSON-RPC error. */
export function refuseWith(error: { readonly code: number; readonly message: string }): Treatment {
  return (passage) => answer(passage, { error });
}

interface LogFilter {
  readonly fromBlock?: string;
  readonly toBlock?: string;
  readonly blockHash?: string;
}

export function filterOf({ calls }: Passage): LogFilter {
  const filter: LogFilter = calls[0]?.params[0] ?? {};
  return filter;
}

/** A chain node's answer: JSON-RPC 2.0 without its envelope. */
export type NodeAnswer = { readonly result: unknown } | { readonly error: { code: number; message: string } };

export function answer({ calls, response }: Passage, content: NodeAnswer): void {
  response.end(JSON.stringify({ jsonrpc: "2.0", id: calls[0]?.id, ...content }));
}
