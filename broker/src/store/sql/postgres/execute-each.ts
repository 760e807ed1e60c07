import type { ExecuteEach } from "../schema.ts";

/** One statement after another: a transaction has one connection, and the client sends on it what the server has answered. */
export const executeEach: ExecuteEach = async (transaction, query, values) => {
  const rows = [];
  for (const one of values) rows.push(...(await transaction.executeQuery(query.bind(one))).rows);
  return rows;
};
