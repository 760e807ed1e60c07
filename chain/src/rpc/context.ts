import type { Chain } from "../chain/chain.ts";
import type { ReadableChain } from "../chain/readable-chain.ts";
import type { Simulator } from "../execution/simulator.ts";
import type { Filters } from "./filters.ts";
import type { Params } from "./params.ts";
import type { Subscriptions } from "./subscriptions.ts";

/** What read-only methods work on. */
export interface ReadContext {
  readonly chain: ReadableChain;
  readonly simulator: Simulator;
}

/** What all methods work on, for the process that opened the chain. */
export interface RpcContext extends ReadContext {
  readonly chain: Chain;
  readonly filters: Filters;
  readonly subscriptions: Subscriptions;
}

export type RpcMethod<Context> = (context: Context, params: Params) => unknown;
export type RpcMethods<Context> = Readonly<Record<string, RpcMethod<Context>>>;
