import { expect, it } from "vitest";
import { NativeCalls } from "../native-calls.ts";
import { ChainDatabase } from "./chain-database.ts";
import { openDatabase } from "./open-database.ts";
import { SCHEMA } from "./schema.ts";

it("reads the places of a key as they are needed", async () => {
  const { database, close } = await openDatabase(":memory:", new NativeCalls());
  const [key, count] = [7, 25_000];
  database.exec(
    `${SCHEMA} WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
     INSERT INTO places SELECT ${key}, i FROM n`,
  );
  const chain = new ChainDatabase(database);
  expect([...chain.readPlaces(key)]).toHaveLength(count);
  const places = chain.readPlaces(key);
  expect(places.next().value).toBe(1);
  database.exec("DELETE FROM places"); // Now, whatever it still finds is in memory.
  expect([...places].length).toBeLessThan(count / 2);
  close();
});
