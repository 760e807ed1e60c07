import type { ReadContext, RpcMethods } from "./context.ts";
import { findLogs, toLogQuery } from "./log-filter.ts";

export const logMethods: RpcMethods<ReadContext> = {
  eth_getLogs: ({ chain }, params) => findLogs(chain, toLogQuery(chain, params.required(0))),
};
