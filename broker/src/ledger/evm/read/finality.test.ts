import { expect, it } from "vitest";
import { RpcFailure } from "../endpoint/rpc-failure.ts";
import type { Header, Rpc } from "../endpoint/rpc.ts";
import { type Finality, FinalityPolicy } from "./finality.ts";

function header(number: number): Header {
  const hash = `0x${"00".repeat(32)}` as const;
  const unknown = { logsBloom: undefined, transactionsRoot: undefined };
  return { number, hash, parentHash: hash, timestamp: 0, baseFeePerGas: undefined, gasLimit: 0, ...unknown };
}

/** The number of the final block if `latest` is the head and the endpoint answers requests for a tag with `answer`. */
async function finalAt(finality: Finality, latest: number, answer?: Header | Error): Promise<number> {
  const findHeader = async (): Promise<Header | undefined> => {
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const rpc = { findHeader } as Pick<Rpc, "findHeader"> as Rpc; // The policy uses nothing else.
  return (await new FinalityPolicy(rpc, finality).finalAt(header(latest))).number;
}

it.each([
  ["latest", 7, 7],
  [0, 7, 7],
  [3, 2, -1],
  [3, 3, 0],
  [3, 10, 7],
] as const)("finality %s: of a chain that ends at %i, block %i is final", async (finality, latest, final) => {
  expect(await finalAt(finality, latest)).toBe(final);
});

it.each(["safe", "finalized"] as const)(
  "finality %s: the endpoint says which block is final, or that none is",
  async (tag) => {
    expect(await finalAt(tag, 10, header(4))).toBe(4);
    expect(await finalAt(tag, 10, undefined)).toBe(-1);
    const notFound = new RpcFailure("refused", `${tag} block not found`, { cause: undefined });
    expect(await finalAt(tag, 10, notFound)).toBe(-1);
    const unreached = new RpcFailure("unreached", "host not found", { cause: undefined });
    await expect(finalAt(tag, 10, unreached)).rejects.toBe(unreached);
    const refused = new RpcFailure("refused", "invalid block number", { cause: undefined });
    await expect(finalAt(tag, 10, refused)).rejects.toMatchObject({
      kind: "refused",
      message: `the endpoint does not return its ${tag} block, which the group's finality asks for: invalid block number`,
    });
  },
);
