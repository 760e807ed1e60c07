import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import type { Random } from "../../harness/random.ts";

/** Small tables of the index, each with a column that a checksum covers. After damage to one of their rows, the next start empties the index. */
const smallRows = [
  ["groups", "generation"],
  ["groups", "batch_count"],
  ["topics", "sequence"],
  ["topics", "event_count"],
  ["retained", "sequence"],
] as const;

/** Changes a row of a small table of the index, and a byte of one transaction in the chain. Only the index still has the events of that transaction. */
export function damageRowAndBlock(folder: string, random: Random): void {
  const [table, column] = random.pick(smallRows);
  runStatement(join(folder, "store.sqlite"), `update ${table} set ${column} = ${column} + 1`);
  const [along, within] = [random.fraction(), random.fraction()];
  runStatement(join(folder, "chain.sqlite"), flipByte(along, within));
}

/** Runs a statement on a file that no broker has open. */
export function runStatement(file: string, statement: string): void {
  const database = new DatabaseSync(file);
  database.exec(statement);
  database.close();
}

/** SQL that replaces one byte of one transaction. `along` chooses the transaction and `within` its byte; both are in [0,1). */
function flipByte(along: number, within: number): string {
  const place = `(select place from transactions order by place limit 1 offset (select cast(count(*) * ${along} as integer) from transactions))`;
  const at = `cast(length(raw) * ${within} as integer)`;
  const byte = `case hex(substr(raw, ${at} + 1, 1)) when '00' then x'01' else x'00' end`;
  const changed = `cast(substr(raw, 1, ${at}) || ${byte} || substr(raw, ${at} + 2) as blob)`;
  return `update transactions set raw = ${changed} where place = ${place}`;
}
