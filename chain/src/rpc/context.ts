import type { Chain } from "../chain/chain.ts";
import type { Simulator } from "../execution/simulator.ts";
import type { Filters } from "./filters.ts";
import type { Params } from "./params.ts";
import type { Subscriptions } from "./subscriptions.ts";

/** What the methods work on. */
export interface RpcContext {
  readonly chain: Chain;
  readonly simulator: Simulator;
  readonly filters: Filters;
  readonly subscriptions: Subscriptions;
}

export type RpcMethod = (context: RpcContext, params: Params) => unknown;
export type RpcMethods = Readonly<Record<string, RpcMethod>>;
