import { type RawBuilder, sql } from "kysely";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { before, positionZero, toPosition } from "../../../domain/position.ts";
import { parseTopicFilter } from "../../../domain/topic-filter.ts";
import type { TopicName } from "../../../domain/topic-name.ts";
import { silentLogger } from "../../../lib/logger.ts";
import { keyRowOf } from "../../../ports/publish-keys.contract.ts";
import { claimOf, filterOf } from "../../../ports/session-examples.contract.ts";
import { group, history } from "../../../ports/store-examples.contract.ts";
import type { SqlBackend, SqlDatabase } from "../schema.ts";
import { SqlStore } from "../sql-store.ts";

const bits = [0, 7, 19, 20, 31, 33, 40];
const flipped = (column: string, bit: number) =>
  sql.raw(`${column} = (${column} | ${2 ** bit}) - (${column} & ${2 ** bit})`);
const shared = parseTopicFilter("$share/s/a");
const changed = (column: string) => sql.raw(`${column} = ${column} || 'x'`);

/** Tests that a store detects changed rows of sessions, filters, shares, publish keys and batches. */
export function testSqlSessionDamage(name: string, create: () => Promise<SqlBackend>): void {
  describe(`${name} with damaged sessions, shares, publish keys and batches`, () => {
    let store: SqlStore;
    let database: SqlDatabase;
    beforeEach(async () => {
      const backend = await create();
      store = new SqlStore({ ...backend, open: async () => (database = await backend.open()) }, silentLogger);
      await store.start();
      await store.applyBlocks(group, history);
      const claim = claimOf();
      const { newId: id, newEpoch: epoch } = claim;
      await store.sessions.claimSession(claim);
      await store.sessions.saveSessionFilters(
        { id, epoch },
        { put: [filterOf(1), filterOf(2)], removed: [], generation: 0 },
      );
      await store.recordPublishKeys([keyRowOf(1)]);
    });
    afterEach(async () => store.stop());

    /** Begins a share with one member, and gives the member two events. */
    async function startShare() {
      const { newId: id, newEpoch: epoch } = claimOf();
      const put = [{ ...filterOf(3), filter: shared, startsAfter: toPosition(0, 1) }];
      await store.sessions.saveSessionFilters({ id, epoch }, { put, removed: [], generation: 0 });
      const share = await store.shares.findShare(group, shared);
      if (share === undefined) throw new Error("there is no share");
      const places = [toPosition(1, 1), toPosition(2, 0)];
      const gifts = places.map((position) => ({ position, topic: "a" as TopicName, to: { id, epoch } }));
      const cursor = toPosition(2, 0);
      expect(await store.shares.takeShared({ ...share, cursor, gifts, dropped: [] })).toBe("taken");
      return { share: { ...share, epoch: share.epoch + 1 }, places };
    }

    it.each<readonly [string, RawBuilder<unknown>]>([
      ...["cursor", "taken"].flatMap((column) =>
        bits.map((bit) => [`bit ${bit} of ${column}`, flipped(column, bit)] as const),
      ),
      ["principal", changed("principal")],
      ["group_id", changed("group_id")],
      ["expiry_ms", flipped("expiry_ms", 5)],
      ["will_delay_ms", flipped("will_delay_ms", 5)],
      ["will", sql`will = null`],
      ["in_flight_check", flipped("in_flight_check", 3)],
    ])("does not find a session after a change of %s", async (_, change) => {
      expect(await store.sessions.findSession(claimOf().newId)).toBeDefined();
      await sql`update sessions set ${change}`.execute(database.relaxed);
      expect(await store.sessions.findSession(claimOf().newId)).toBeUndefined();
    });

    it.each<readonly [string, RawBuilder<unknown>]>([
      ...bits.map((bit) => [`bit ${bit} of starts_after`, flipped("starts_after", bit)] as const),
      ["filter", changed("filter")],
      ["options", flipped("options", 0)],
      ["identifier", flipped("identifier", 9)],
    ])("reports a session as damaged after a change of %s of one of its filters", async (_, change) => {
      await sql`update session_subscriptions set ${change} where subscription_id = ${filterOf(2).id}`.execute(
        database.relaxed,
      );
      expect(await store.sessions.findSession(claimOf().newId)).toBeUndefined();
      expect(await store.sessions.claimSession(claimOf())).toMatchObject({ status: "damaged" });
    });

    it("a rollback that moves the starts of filters keeps intact filters intact, and damaged ones damaged", async () => {
      await store.rollBack(group, { number: 2, hash: history[1]?.hash ?? "0x" });
      expect((await store.sessions.findSession(claimOf().newId))?.filters).toHaveLength(2);
      await sql`update session_subscriptions set ${flipped("starts_after", 33)}`.execute(database.relaxed);
      await store.rollBack(group, { number: 1, hash: history[0]?.hash ?? "0x" });
      expect(await store.sessions.findSession(claimOf().newId)).toBeUndefined();
    });

    it.each<readonly [string, RawBuilder<unknown>]>([
      ...bits.map((bit) => [`bit ${bit} of cursor`, flipped("cursor", bit)] as const),
      ["share_id", changed("share_id")],
      ["group_id", changed("group_id")],
      ["filter", changed("filter")],
      ["cursor_check", flipped("cursor_check", 3)],
      ["checksum", flipped("checksum", 3)],
    ])("continues a share for its members after a change of %s, and loses no event", async (_, change) => {
      const { share, places } = await startShare();
      await sql`update shares set ${change}`.execute(database.relaxed);
      const again = await store.shares.findShare(group, shared);
      expect(again).toBeDefined();
      expect(await store.shares.findShare(group, shared)).toEqual(again);
      const late = { ...share, gifts: [], dropped: [] };
      expect(await store.shares.takeShared(late)).toBe("refused");
      await store.sessions.claimSession(claimOf()); // The new connection returns the member's events to the share.
      const returned = await store.shares.listReturned(again?.id ?? share.id, { after: positionZero, atMost: 9 });
      const known = new Set(returned.map(({ position }) => position));
      expect(again?.cursor).toBeLessThanOrEqual(places[1] ?? 0);
      expect(places.filter((place) => place <= (again?.cursor ?? 0) && !known.has(place))).toEqual([]);
    });

    it.each(["position = -5", "position = 0", "position = 1", "position = 2.5", "topic = 'b'", "checksum = 1"])(
      "findShareCursors returns a share's cursor after its oldest event was changed to %s",
      async (change) => {
        const { places } = await startShare();
        const findPlaces = () => store.shares.findShareCursors(group, [shared]);
        expect(await findPlaces()).toEqual(new Map([[shared, before(toPosition(1, 1))]]));
        await sql`update share_events set ${sql.raw(change)} where position = ${places[0]}`.execute(database.relaxed);
        expect(await findPlaces()).toEqual(new Map([[shared, toPosition(2, 0)]]));
      },
    );

    it("a page of returned events is full although rows before its last event are damaged", async () => {
      const { share, places } = await startShare();
      await store.sessions.claimSession(claimOf()); // The new connection returns the member's events to the share.
      await sql`update share_events set topic = 'b' where position = ${places[0]}`.execute(database.relaxed);
      const list = () => store.shares.listReturned(share.id, { after: positionZero, atMost: 1 });
      expect(await list()).toEqual([{ topic: "a", position: places[1] }]);
      await sql`update share_events set topic = 'b'`.execute(database.relaxed);
      expect(await list()).toEqual([]);
    });

    it("continues a share for its members after its row was lost", async () => {
      const { places } = await startShare();
      await sql`delete from shares`.execute(database.relaxed);
      expect(await store.shares.findShare(group, shared)).toMatchObject({ cursor: places[1] });
    });

    it.each<readonly [string, RawBuilder<unknown>]>([
      ...bits.map((bit) => [`bit ${bit} of after_position`, flipped("after_position", bit)] as const),
      ["token", changed("token")],
      ["topic", changed("topic")],
      ["digest", changed("digest")],
      ["sender", changed("sender")],
      ["recorded_at", flipped("recorded_at", 12)],
    ])("reports a publish key as damaged after a change of %s", async (_, change) => {
      await sql`update publish_keys set ${change}`.execute(database.relaxed);
      expect(await store.findPublishKey(keyRowOf(1))).toMatchObject({ isDamaged: true });
    });

    it.each(["first_position", "last_position"].flatMap((column) => bits.map((bit) => [bit, column] as const)))(
      "repairs a batch after a flip of bit %i of its %s",
      async (bit, column) => {
        await sql`update batches set ${flipped(column, bit)} where first_sequence = 4`.execute(database.relaxed);
        let repaired = 0;
        for (const block of history) repaired += (await store.repairBatches(group, block)).length;
        expect(repaired).toBe(1);
        const range = {
          after: toPosition(0, 0),
          upTo: toPosition(9, 0),
          topic: undefined,
          batchesMax: 99,
          bytesMax: 1 << 30,
        };
        expect(await store.readBatches(group, range)).toEqual(history.flatMap(({ batches }) => batches));
      },
    );
  });
}
