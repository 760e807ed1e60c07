import { toHex } from "../lib/bytes.ts";
import { toQuantity } from "../lib/hex.ts";
import { toSimulation } from "./call-params.ts";
import type { RpcMethods } from "./context.ts";

export const executionMethods: RpcMethods = {
  eth_call: async ({ chain, simulator }, params) => toHex(await simulator.call(toSimulation(chain, params))),
  eth_estimateGas: async ({ chain, simulator }, params) =>
    toQuantity(await simulator.estimate(toSimulation(chain, params))),
};
