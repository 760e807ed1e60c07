import type { RpcContext, RpcMethods } from "./context.ts";
import { type LogQuery, toLogQuery } from "./log-filter.ts";
import { isRecord, type Params } from "./params.ts";

/** Filters and subscriptions, which the chain remembers for its owner. */
export const filterMethods: RpcMethods<RpcContext> = {
  eth_newFilter: (context, params) => context.filters.add(toFilterQuery(context, params)),
  eth_newBlockFilter: ({ filters }) => filters.add(undefined),
  eth_getFilterChanges: ({ filters }, params) => filters.changes(params.hexText(0)),
  eth_getFilterLogs: ({ filters }, params) => filters.logs(params.hexText(0)),
  eth_uninstallFilter: ({ filters }, params) => filters.remove(params.hexText(0)),
  eth_subscribe: ({ subscriptions }, params) => subscriptions.add(params.required(0), params.optional(1)),
  eth_unsubscribe: ({ subscriptions }, params) => subscriptions.remove(params.hexText(0)),
};

const OPEN_END = 2n ** 33n;

/** Reads the criteria and blocks of a filter. A filter without an upper end follows the chain. */
function toFilterQuery({ chain }: RpcContext, params: Params): LogQuery {
  const filter = params.required(0);
  const query = toLogQuery(chain, filter);
  const isBounded = isRecord(filter) && (typeof filter["blockHash"] === "string" || isBlockNumber(filter["toBlock"]));
  return isBounded ? query : { ...query, to: OPEN_END };
}

function isBlockNumber(tag: unknown): boolean {
  return typeof tag === "string" && tag.startsWith("0x");
}
