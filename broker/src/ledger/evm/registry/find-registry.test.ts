import { topicRegistryAbi } from "@stele/contracts";
import { encodeFunctionResult } from "viem/utils";
import { expect, test } from "vitest";
import { type EvmProvider, Rpc } from "../endpoint/rpc.ts";
import { createdAddress, findRegistry } from "./find-registry.ts";

const deployer = `0x${"ab".repeat(20)}` as const;
const hash = `0x${"00".repeat(32)}` as const;
const head = { number: "0x5", hash, parentHash: hash, timestamp: "0x1", gasLimit: "0x1000000" };
const noTopics = encodeFunctionResult({ abi: topicRegistryAbi, functionName: "topics", result: [] });

/**
 * Two chain nodes behind one address. The first answers requests for blocks and counts, the second all others. If the second lags, it lacks the newest block.
 */
function nodes(isLagging: boolean): EvmProvider {
  return {
    request: async ({ method, params = [] }) => {
      if (method === "eth_getBlockByNumber") return head;
      if (method === "eth_getTransactionCount") return "0x1";
      if (isLagging && params[1] === "latest") return "0x";
      if (isLagging) throw Object.assign(new Error("header not found"), { code: -32_000 });
      return method === "eth_getCode" ? "0x6000" : noTopics;
    },
  };
}

test("finds the registry that a key deployed", async () => {
  expect(await findRegistry(new Rpc(nodes(false)), deployer)).toEqual({
    address: createdAddress(deployer, 0),
    used: 1,
  });
});

test("fails, instead of missing the registry, if a second chain node lacks the newest block", async () => {
  await expect(findRegistry(new Rpc(nodes(true)), deployer)).rejects.toThrow("header not found");
});
