import { toHex, toQuantity } from "@stele/eth/node";
import { toSimulation } from "./call-params.ts";
import type { ReadContext, RpcMethods } from "./context.ts";

export const executionMethods: RpcMethods<ReadContext> = {
  eth_call: async ({ chain, simulator }, params) => toHex(await simulator.call(await toSimulation(chain, params))),
  eth_estimateGas: async ({ chain, simulator }, params) =>
    toQuantity(await simulator.estimate(await toSimulation(chain, params))),
};
