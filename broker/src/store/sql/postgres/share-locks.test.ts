import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { positionZero } from "../../../domain/position.ts";
import { parseTopicFilter } from "../../../domain/topic-filter.ts";
import { claimOf, filterOf, idOf } from "../../../ports/session-examples.contract.ts";
import type { SessionKey, StoredFilter } from "../../../ports/session-store.ts";
import { group } from "../../../ports/store-examples.contract.ts";
import type { SqlStore } from "../sql-store.ts";
import { createPostgresStore } from "./postgres-store.ts";
import { hasPostgres, type PostgresServer, startPostgres, titleOf } from "./testing/postgres-server.ts";

/** So few that the last one gets its locks within the 5 s that a wait for a lock may take, even on a loaded machine. */
const sessions = 10;
const sharesOfEach = 1_000;

describe.runIf(hasPostgres)(titleOf("the locks of shares in PostgreSQL"), () => {
  let server: PostgresServer;
  let stores: readonly SqlStore[];
  beforeAll(async () => {
    server = await startPostgres({ settings: ["max_locks_per_transaction=10"] }); // Room for about 1,300 locks.
  });
  beforeEach(async () => {
    const url = await server.createDatabase();
    stores = [0, 1, 2].map(() => createPostgresStore({ url }));
    await Promise.all(stores.map(async (store) => store.start()));
  });
  afterEach(async () => {
    await Promise.all(stores.map(async (store) => store.stop()));
  });
  afterAll(async () => server.remove());

  it("more shares begin and end at once than the server has room for locks", async () => {
    const keys = await Promise.all(Array.from({ length: sessions }, async (_, number) => begin(number)));
    const joining = keys.map(async (key, number) => {
      const change = { put: sharesOf(number), removed: [], generation: 0 };
      return storeOf(number).sessions.saveSessionFilters(key, change);
    });
    expect(new Set(await Promise.all(joining))).toEqual(new Set(["saved"]));
    expect(await findShares()).toHaveLength(sessions * sharesOfEach);
    const removing = keys.map(async (key, number) => storeOf(number).sessions.removeSession(key));
    expect(new Set(await Promise.all(removing))).toEqual(new Set([true]));
    expect(await findShares()).toEqual([]);
  });

  async function begin(number: number): Promise<SessionKey> {
    const claim = claimOf({ newId: idOf(number), key: `client ${number}`, position: positionZero });
    const claimed = await storeOf(number).sessions.claimSession(claim);
    if (claimed.status !== "begun" || claimed.current === undefined)
      throw new Error(`the session is ${claimed.status}`);
    return claimed.current;
  }

  async function findShares(): Promise<readonly unknown[]> {
    const filters = Array.from({ length: sessions }, (_, number) => sharesOf(number).map(({ filter }) => filter));
    return [...(await storeOf(0).shares.findShareCursors(group, filters.flat()))];
  }

  function storeOf(number: number): SqlStore {
    const store = stores[number % stores.length];
    if (store === undefined) throw new Error("there is no store");
    return store;
  }
});

function sharesOf(number: number): readonly StoredFilter[] {
  return Array.from({ length: sharesOfEach }, (_, index) => {
    const filter = parseTopicFilter(`$share/s/${number}/${index}`);
    return filterOf(number * sharesOfEach + index, { filter, startsAfter: positionZero });
  });
}
