import { expect, it } from "vitest";
import { NativeCalls } from "../native-calls.ts";
import { ChainDatabase } from "./chain-database.ts";
import { openDatabase } from "./open-database.ts";
import { SCHEMA } from "./schema.ts";

it("readPlaces reads few places for a search that takes few, and more at once for a search that takes many", async () => {
  const { database, close } = await openDatabase(":memory:", new NativeCalls());
  const [key, count] = [7, 25_000];
  database.exec(
    `${SCHEMA} WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
     INSERT INTO places SELECT ${key}, i FROM n`,
  );
  const chain = new ChainDatabase(database);
  expect([...chain.readPlaces(key)]).toHaveLength(count);
  const [few, many] = [chain.readPlaces(key), chain.readPlaces(key)];
  expect(few.next().value).toBe(1);
  for (let place = 1; place <= 2_000; place += 1) expect(many.next().value).toBe(place);
  database.exec("DELETE FROM places"); // So they find only places that are in memory already.
  expect([...few].length).toBeLessThan(1_000);
  expect([...many].length).toBeLessThan(count / 2);
  close();
});
