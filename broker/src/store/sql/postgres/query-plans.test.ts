import { CompiledQuery } from "kysely";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { silentLogger } from "../../../lib/logger.ts";
import { defaultGroupId } from "../../../domain/group-id.ts";
import { toPosition } from "../../../domain/position.ts";
import { parseTopicFilter } from "../../../domain/topic-filter.ts";
import type { TopicName } from "../../../domain/topic-name.ts";
import type { ShareId } from "../../../ports/session-store.ts";
import { batchesOfRange, nextBatchOfEach } from "../index/count-events.ts";
import { createIndexQueries, findTopics, findTopicsByAddress } from "../index/index-queries.ts";
import { migrate } from "../migrations/migrations.ts";
import type { SqlDatabase } from "../schema.ts";
import { findPlaces, findReturned, findReturning } from "../sessions/sql-shares.ts";
import { findSubscriptions } from "../subscriptions/subscription-queries.ts";
import { parsePostgresAddress } from "./address.ts";
import { createPostgresBackend } from "./postgres-backend.ts";
import { changeQuery } from "./row-writer.ts";
import { progressQuery } from "./save-progress.ts";
import { hasPostgres, type PostgresServer, startPostgres, titleOf } from "./testing/postgres-server.ts";

const topics = 1000;
const batches = 50_000;

type Queries = ReturnType<typeof createIndexQueries>;

// One group has all batches and one topic half of them, so that a condition on the group or the topic alone selects many rows.
describe.runIf(hasPostgres)(titleOf("query plans of PostgreSQL"), () => {
  let server: PostgresServer;
  let database: SqlDatabase;
  beforeAll(async () => {
    server = await startPostgres({ settings: ["autovacuum=off"] });
    const address = parsePostgresAddress(server.url());
    const backend = createPostgresBackend({ address, logger: silentLogger, connectionsMax: 1 });
    database = await backend.open();
    await migrate(database, backend);
    await fill();
  });
  afterAll(async () => {
    await database.close();
    await server.remove();
  });

  const named = { groupId: "1", name: "topic/17" };
  const middle = toPosition(batches / 2, 0);
  const range = {
    groupId: "1",
    topicId: 17,
    after: middle,
    upTo: middle + 2 ** 40,
    upToEndOfBlock: middle + 2 ** 40,
    limit: 64,
  };
  const span = { groupId: "1", topicId: 17, after: middle, last: toPosition(batches / 2 + 64, 0) };
  const cases: readonly (readonly [string, (queries: Queries) => CompiledQuery])[] = [
    ["findTopic", (q) => q.findTopic.bind(named)],
    ["findTopicsByDigest", (q) => q.findTopicsByDigest.bind({ ...named, digest: "17" })],
    ["listTopics", (q) => q.listTopics.bind({ ...named, offset: 500, limit: 10 })],
    ["findNewestTopic", (q) => q.findNewestTopic.bind(named)],
    ["findBatch", (q) => q.findBatch.bind({ topicId: 17, sequence: batches / 2 })],
    ["findNextBatch", (q) => q.findNextBatch.bind({ topicId: 17, after: middle })],
    ["findSizes", (q) => q.findSizes.bind(range)],
    ["findSizesOfTopic", (q) => q.findSizesOfTopic.bind(range)],
    ["readBatches", (q) => q.readBatches.bind(span)],
    ["readBatchesOfTopic", (q) => q.readBatchesOfTopic.bind(span)],
  ];

  it.each(cases)(
    "%s uses an index and scans neither batches nor subscriptions, with or without statistics",
    async (_, bind) => {
      const query = bind(createIndexQueries(database.relaxed));
      for (const known of [false, true]) {
        const plan = await planOf(query, known);
        expect(plan.join("\n")).toMatch(/Index (Only )?Scan|Bitmap Index Scan/);
        expect(plan.filter((line) => /Seq Scan on (batches|subscriptions)/.test(line))).toEqual([]);
      }
    },
  );

  it.each(["findSizes", "findSizesOfTopic", "findBatch", "findNextBatch", "listTopics"])(
    "%s sorts nothing, so that it can stop at its limit",
    async (name) => {
      const [, bind] = cases.find(([own]) => own === name) ?? [];
      if (bind === undefined) throw new Error("no such query");
      const plan = await planOf(bind(createIndexQueries(database.relaxed)), true);
      expect(plan.filter((line) => /Sort|Bitmap/.test(line))).toEqual([]);
    },
  );

  it("saving progress uses the primary key and scans no table", async () => {
    const hundred = Array.from({ length: 100 }, (_, index) => index);
    const columns = { ids: hundred.map((n) => `sub-${n}`), epochs: hundred.map(() => 0), cursors: hundred };
    const query = progressQuery(
      {
        ...columns,
        counts: hundred,
        times: hundred,
        attempts: hundred,
        waits: hundred,
        begins: hundred,
        retries: hundred,
        checks: hundred,
      },
      { letters: [], isPatient: false },
    ).compile(database.relaxed);
    for (const known of [false, true]) {
      const plan = (await planOf(query, known)).join("\n");
      expect(plan.match(/Index Scan (using|on) subscriptions_pkey/g)).toHaveLength(3);
      expect(plan).not.toMatch(/Seq Scan/);
    }
  });

  it("findSubscriptions uses the primary key and binds all ids as one parameter", async () => {
    const query = findSubscriptions(database, ["sub-1", "sub-2"]).compile();
    expect(query.parameters).toHaveLength(1);
    expect((await planOf(query, true)).join("\n")).toMatch(/Index Scan using subscriptions_pkey/);
  });

  it("changeQuery uses the primary key of topics", async () => {
    const changes = [17, 18].map((topic_id) => ({
      topic_id,
      sequence: 1,
      block_number: 1,
      closed: 0,
      event_count: 1,
      checksum: 1,
    }));
    const query = changeQuery(changes).compile(database.relaxed);
    expect(query.parameters).toHaveLength(6);
    expect((await planOf(query, true)).join("\n")).toMatch(/Index Scan using topics_pkey/);
  });

  it("findTopics and findTopicsByAddress use an index and bind all values as one parameter", async () => {
    for (const query of [findTopics(database, "1", ["topic/17"]), findTopicsByAddress(database, "1", ["0x17"])]) {
      const compiled = query.compile();
      expect(compiled.parameters).toHaveLength(2);
      expect((await planOf(compiled, true)).join("\n")).toMatch(/Index Scan using topics_by_(name|address)/);
    }
  });

  it("nextBatchOfEach finds each place by a database index, without a scan of the table", async () => {
    const topics = ["topic/17", "topic/18"] as TopicName[]; // They are valid names.
    const places = topics.map((topic) => ({ topic, after: middle }));
    const query = nextBatchOfEach(database, defaultGroupId, places).compile(database.relaxed);
    expect(query.parameters).toHaveLength(3);
    for (const known of [false, true]) {
      const plan = (await planOf(query, known)).join("\n");
      expect(plan).toMatch(/Limit[^]*Index (Only )?Scan using batches_by_topic_position/);
      expect(plan).not.toMatch(/Seq Scan on batches/);
    }
  });

  it("batchesOfRange reads batches in the order of an index, up to a limit", async () => {
    const bounds = { after: middle, upTo: toPosition(batches, 0), batchesMax: 1_000 };
    const query = batchesOfRange(database, defaultGroupId, bounds).compile();
    const plan = (await planOf(query, true)).join("\n");
    expect(plan).toMatch(/Limit[^]*Index Scan using batches_by_position/);
    expect(plan).not.toMatch(/Seq Scan on batches/);
  });

  it("listing a node's subscriptions uses the index by owner", async () => {
    const { relaxed } = database;
    const query = relaxed.selectFrom("subscriptions").selectAll().where("owner", "=", "node-7").orderBy("id").compile();
    const plan = (await planOf(query, true)).join("\n");
    expect(plan).toMatch(/Index Scan (using|on) subscriptions_by_owner/);
    expect(plan).not.toMatch(/Seq Scan/);
  });

  it("findReturned and findReturning find the events of a share by index", async () => {
    const shareId = "share-1" as ShareId;
    const ofShare = { after: { share_id: shareId, position: 0 }, upTo: undefined };
    const ofAll = { after: { share_id: "", position: 0 }, upTo: undefined };
    for (const query of [findReturned(database.relaxed, ofShare, 9), findReturning(database, [shareId], ofAll)]) {
      const plan = (await planOf(query.compile(), true)).join("\n");
      expect(plan).toMatch(/(Index|Index Only|Bitmap Index) Scan (using|on) share_events_by_position/);
      expect(plan).not.toMatch(/Seq Scan on share_events/);
    }
  });

  it("findPlaces finds the oldest event of each share in an index", async () => {
    const filters = ["$share/s/1", "$share/s/2"].map(parseTopicFilter);
    const plan = (await planOf(findPlaces(database, defaultGroupId, filters).compile(), true)).join("\n");
    expect(plan).toMatch(/Index Scan using share_events_by_position on share_events/);
    expect(plan).not.toMatch(/Seq Scan on share_events/);
  });

  /** Explains a query in a transaction that is rolled back, so that the statistics of `analyze` are discarded. */
  async function planOf(query: CompiledQuery, known: boolean): Promise<readonly string[]> {
    const lines: string[] = [];
    const explaining = database.relaxed.transaction().execute(async (transaction) => {
      if (known) await transaction.executeQuery(CompiledQuery.raw("analyze"));
      const explained = CompiledQuery.raw(`explain ${query.sql}`, [...query.parameters]);
      const { rows } = await transaction.executeQuery(explained);
      // The one column of an explanation.
      lines.push(...rows.map((row) => (row as { "QUERY PLAN": string })["QUERY PLAN"]));
      throw new RolledBack();
    });
    await expect(explaining).rejects.toThrow(RolledBack);
    return lines;
  }

  async function fill(): Promise<void> {
    const statements = [
      `insert into groups values ('1', ${batches}, '0x', 0, ${batches}, 0)`,
      `insert into topics select n, '1', n, 'topic/' || n, n::text, '0x' || n, '0x', 1, 50, 1, 0, 50, 0 from generate_series(1, ${topics}) n`,
      `insert into batches (group_id, ordinal, first_position, last_position, topic_id, first_sequence, events_before, byte_count,
         transaction_hash, log_index, publisher, events_checksum, checksum, events)
       select '1', n, n * 2^20, n * 2^20, case when n % 2 = 0 then 17 else 1 + n % ${topics} end, n, n, 200, '0x', 0, '0x', 0, 0, repeat('x', 200)::bytea
       from generate_series(1, ${batches}) n`,
      `insert into subscriptions
       select 'sub-' || n, '1', 'topic/#', 'RESTful', 'http://x/', null, null, 'active', n, 0, 0, 0, 0, n, 'node-' || n % 100, 0, null, 0, 0
       from generate_series(1, 10000) n`,
      `insert into share_events (share_id, position, topic, session_id, session_epoch, checksum) select 'share-' || n % 100, n, 'a', 'session-' || n % 1000, 0, 0 from generate_series(1, 20000) n`,
      `insert into shares (share_id, group_id, filter, cursor, epoch, cursor_check, checksum) select 'share-' || n, '${defaultGroupId}', '$share/s/' || n, 0, 0, 0, 0 from generate_series(0, 99) n`,
    ];
    for (const statement of statements) await server.query(statement);
  }
});

class RolledBack extends Error {}
