import { type Compilable, CompiledQuery, createQueryId, type KyselyPlugin, type RootOperationNode } from "kysely";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { positionZero, toPosition } from "../../domain/position.ts";
import { TenantNames } from "../../domain/tenant-names.ts";
import type { TopicFilter } from "../../domain/topic-filter.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import { idOf } from "../../ports/session-examples.contract.ts";
import { blockOf, topicOf } from "../../ports/store-examples.contract.ts";
import { temporaryFile } from "../temporary-file.contract.ts";
import { batchesOfRange, nextBatchOfEach } from "./index/count-events.ts";
import { indexChecks } from "./index/find-contradiction.ts";
import { createIndexQueries, findTopics, findTopicsByAddress } from "./index/index-queries.ts";
import { SqlIndex } from "./index/sql-index.ts";
import { countTopicsAfter } from "./index/topic-counts.ts";
import { findTopicsIn } from "./index/topics-in-ranges.ts";
import { migrate } from "./migrations/migrations.ts";
import type { SqlDatabase } from "./schema.ts";
import { countDetached, findDetached } from "./sessions/session-detaching.ts";
import type { ShareId } from "../../ports/session-store.ts";
import { findWithoutMember } from "./sessions/share-members.ts";
import { findMembers } from "./sessions/share-restore.ts";
import { findPlaces, findRangeEnd, findReturned, findReturning } from "./sessions/sql-shares.ts";
import { countPage } from "./sql-publish-keys.ts";
import { createSqliteBackend } from "./sqlite/sqlite-backend.ts";
import { createProgressQueries } from "./sqlite/progress-writer.ts";
import { createSubscriptionQueries, findSubscriptions } from "./subscriptions/subscription-queries.ts";

describe("query plans of SQLite", () => {
  let database: SqlDatabase;
  beforeEach(async () => {
    const backend = createSqliteBackend(temporaryFile());
    database = await backend.open();
    await migrate(database, backend);
  });
  afterEach(async () => database.close());

  const named = { groupId: "1", name: "a" };
  const range = { groupId: "1", topicId: 1, after: 1, upTo: 2, upToEndOfBlock: 3, limit: 4 };
  const span = { groupId: "1", topicId: 1, after: 1, last: 2 };
  type Queries = ReturnType<typeof createIndexQueries>;
  it.each<[string, (queries: Queries) => CompiledQuery, readonly RegExp[]]>([
    ["findHead", (q) => q.findHead.bind(named), [/^SEARCH groups USING INDEX/]],
    ["findTopic", (q) => q.findTopic.bind(named), [/^SEARCH topics USING INDEX .*name=/]],
    [
      "findTopicsByDigest",
      (q) => q.findTopicsByDigest.bind({ ...named, digest: "0" }),
      [/^SEARCH topics .*topics_by_digest/],
    ],
    ["listTopics", (q) => q.listTopics.bind({ ...named, offset: 1, limit: 1 }), [/^SEARCH topics .*ordinal>/]],
    ["findNewestTopic", (q) => q.findNewestTopic.bind(named), [/^SEARCH topics USING COVERING INDEX/]],
    [
      "findBatch",
      (q) => q.findBatch.bind({ topicId: 1, sequence: 1 }),
      [/^SEARCH batches .*topic_id=\? AND first_sequence</],
    ],
    [
      "findNextBatch",
      (q) => q.findNextBatch.bind({ topicId: 1, after: 1 }),
      [/^SEARCH batches .*topic_id=\? AND last_position>/],
    ],
    ["findSizes", (q) => q.findSizes.bind(range), [/^SEARCH batches .*group_id=\? AND last_position>/]],
    ["findSizesOfTopic", (q) => q.findSizesOfTopic.bind(range), [/^SEARCH batches .*topic_id=\? AND last_position>/]],
    [
      "readBatches",
      (q) => q.readBatches.bind(span),
      [/^SEARCH batches .*group_id=\? AND last_position>/, /^SEARCH topics USING INTEGER PRIMARY KEY/],
    ],
    [
      "readBatchesOfTopic",
      (q) => q.readBatchesOfTopic.bind(span),
      [/^SEARCH batches .*topic_id=\? AND last_position>/],
    ],
    [
      "updateTopic",
      (q) => q.updateTopic.bind({ topic_id: 1, sequence: 1, block_number: 1, closed: 0, event_count: 1, checksum: 1 }),
      [/^SEARCH topics USING INTEGER PRIMARY KEY/],
    ],
  ])("%s uses an index and sorts nothing", async (_, bind, expected) => {
    const plan = await planOf(bind(createIndexQueries(database.relaxed)));
    expect(plan).toHaveLength(expected.length);
    for (const [index, pattern] of expected.entries()) expect(plan[index]).toMatch(pattern);
  });

  const byKey = /^SEARCH subscriptions USING INDEX .*\(id=/;
  type KeyedQueries = ReturnType<typeof createSubscriptionQueries> & ReturnType<typeof createProgressQueries>;
  it.each<[string, (queries: KeyedQueries) => CompiledQuery]>([
    [
      "advance",
      (q) =>
        q.advance.bind({
          id: "a",
          epoch: 0,
          cursor: 1,
          notified_count: 1,
          notified_at: 1,
          failed_attempts: 0,
          failed_ms: 0,
          failing_since: 0,
          retry_at: 0,
          progress_check: 1,
        }),
    ],
    ["find", (q) => q.find.bind({ id: "a", epoch: 0 })],
    ["delete", (q) => q.delete.bind({ id: "a", epoch: 0 })],
  ])("%s of a subscription uses the primary key", async (_, bind) => {
    const queries = { ...createSubscriptionQueries(database.relaxed), ...createProgressQueries(database.relaxed) };
    expect(await planOf(bind(queries))).toEqual([expect.stringMatching(byKey)]);
  });

  it("findSubscriptions uses the primary key and binds all ids as one parameter", async () => {
    const query = findSubscriptions(database, ["a", "b"]).compile();
    expect(query.parameters).toHaveLength(1);
    expect((await planOf(query))[0]).toMatch(byKey);
  });

  it("findTopics and findTopicsByAddress use an index and bind all values as one parameter", async () => {
    for (const [query, key] of [
      [findTopics(database, "1", ["a", "b"]), "name"],
      [findTopicsByAddress(database, "1", ["0x1", "0x2"]), "address"],
    ] as const) {
      const compiled = query.compile();
      expect(compiled.parameters).toHaveLength(2);
      expect((await planOf(compiled))[0]).toMatch(new RegExp(`^SEARCH topics USING INDEX .*${key}=`));
    }
  });

  it("a page of a tenant's topics reads only the names of these topics and the rows of the page", async () => {
    const { groupId, ranges } = { groupId: "1", ranges: new TenantNames("a").ranges };
    const found = await stepsOf(findTopicsIn(database, { groupId, ranges }, { offset: 9, limit: 9 }));
    const byName = /^SEARCH topics USING COVERING INDEX .*\(group_id=\? AND name>\? AND name<\?\)$/;
    expect(ranges).toHaveLength(3);
    expect(found.filter((step) => byName.test(step))).toHaveLength(ranges.length);
    const others = found.filter((step) => !byName.test(step) && !step.startsWith("USE TEMP"));
    expect(others).toEqual(matching(/^SEARCH topics USING INTEGER PRIMARY KEY \(rowid=\?\)$/));
  });

  it("a count of topics reads only those opened since the last count, and finds excepted topics by name", async () => {
    const request = { groupId: defaultGroupId, range: { from: "a/", before: "a0" }, except: ["a/b"] };
    const topicsOf = async (after: number): Promise<readonly string[]> => {
      const steps = await stepsOf({
        compile: () => countTopicsAfter(database, request, after).compile(database.relaxed),
      });
      return steps.filter((step) => step.includes(" topics "));
    };
    const newest = /^SEARCH topics USING COVERING INDEX \S+_1 \(group_id=\?\)$/;
    const byName = /^SEARCH topics USING COVERING INDEX .*\(group_id=\? AND name(>\? AND name<\?|=\?)\)$/;
    const later = /^SEARCH topics USING INDEX \S+_1 \(group_id=\? AND ordinal>\?\)$/;
    expect(await topicsOf(7)).toEqual(matching(newest, later, byName));
    expect(await topicsOf(0)).toEqual(matching(newest, byName, byName));
  });

  describe("of an index with topics of two tenants", () => {
    const nodes: RootOperationNode[] = [];
    let index: SqlIndex;
    let opened = 0;
    beforeEach(() => {
      const noting: KyselyPlugin = {
        transformQuery: ({ node }) => {
          nodes.push(node);
          return node;
        },
        transformResult: async ({ result }) => result,
      };
      index = new SqlIndex({ ...database, relaxed: database.relaxed.withPlugin(noting) });
      opened = 0;
    });

    async function open(count: number, tenant: string): Promise<void> {
      const names = Array.from({ length: count }, (_, at) => parseTopicName(`${tenant}/${opened + at + 1}`));
      const topics = names.map((name, at) => topicOf(name, opened + at + 1));
      opened += count;
      await index.applyBlocks(defaultGroupId, [blockOf(opened, { opened: topics })]);
    }

    /** Whether a query of `run` reads topics in the order of opening, so that it reads topics of other tenants too. */
    async function readsOtherTenants(run: () => Promise<unknown>): Promise<boolean> {
      nodes.length = 0;
      await run();
      const executor = database.relaxed.getExecutor();
      const plans = await Promise.all(nodes.map((node) => planOf(executor.compileQuery(node, createQueryId()))));
      return plans.flat().some((step) => /^SEARCH topics USING INDEX \S+_1 /.test(step));
    }

    const count = async (): Promise<number> => index.countTopics(defaultGroupId, "a/", []);

    it("a count of a tenant's topics reads all its names again if many topics were opened since the last count", async () => {
      await open(100, "a");
      expect(await readsOtherTenants(count)).toBe(false);
      await open(2, "b");
      expect(await readsOtherTenants(count)).toBe(true);
      await open(100, "b");
      expect(await readsOtherTenants(count)).toBe(false);
    });

    it("a page of a tenant's topics reads no topics of other tenants", async () => {
      await open(100, "a");
      await open(100, "b");
      const page = { offset: 0, limit: 9, ranges: new TenantNames("b").ranges };
      expect(await readsOtherTenants(() => index.listTopics(defaultGroupId, page))).toBe(false);
    });
  });

  it("nextBatchOfEach scans the places and looks each up by index", async () => {
    const query = nextBatchOfEach(database, defaultGroupId, []).compile(database.relaxed);
    const plan = (await planOf(query)).filter((step) => /^(SCAN|SEARCH)/.test(step));
    const steps = [
      /^SCAN json_each/,
      /^SEARCH topics .*name=/,
      /^SEARCH batches .*topic_id=\? AND last_position=/,
      /^SEARCH later .*topic_id=\? AND last_position>/,
    ];
    expect(plan).toEqual(steps.map((step) => expect.stringMatching(step) as unknown));
  });

  it("batchesOfRange reads batches in the order of an index", async () => {
    const bounds = { after: positionZero, upTo: toPosition(1, 0), batchesMax: 3 };
    const query = batchesOfRange(database, defaultGroupId, bounds).compile();
    const plan = (await planOf(query)).filter((step) => /^(SCAN|SEARCH)/.test(step));
    const steps = [/^SEARCH batches .*group_id=\? AND last_position>/, /^SEARCH topics USING INTEGER PRIMARY KEY/];
    expect(plan).toEqual(steps.map((step) => expect.stringMatching(step) as unknown));
  });

  it("a page of subscriptions is read by the primary key", async () => {
    const query = createSubscriptionQueries(database.relaxed).list.bind({ after: "a", limit: 2 });
    expect(await planOf(query)).toEqual([expect.stringMatching(/^SEARCH subscriptions USING INDEX .*\(id>/)]);
  });

  it("findDetached and countDetached use the index by detached_at", async () => {
    const listed = await planOf(findDetached(database.relaxed, defaultGroupId, 9).compile());
    expect(listed).toEqual([expect.stringMatching(/^SEARCH sessions USING INDEX sessions_by_detached /)]);
    const counted = await planOf(countDetached(database.relaxed, defaultGroupId).compile());
    expect(counted).toEqual([expect.stringMatching(/^SEARCH sessions USING COVERING INDEX sessions_by_detached /)]);
  });

  it.each([undefined, { share_id: "a", position: 2 }])(
    "findReturned and findReturning read no event outside of their range up to %j",
    async (upTo) => {
      const after = { share_id: "a", position: 1 };
      const ofShare = findReturned(database.relaxed, { after, upTo }, 9);
      const ofAll = findReturning(database, ["a" as ShareId], { after, upTo });
      const until = (place: string): string => (upTo === undefined ? "" : ` AND ${place}`);
      const ranges = [
        `share_id=? AND position>?${until("position<?")}`,
        `(share_id,position)>(?,?)${until("(share_id,position)<(?,?)")}`,
      ];
      for (const [index, query] of [ofShare, ofAll].entries()) {
        const plan = (await planOf(query.compile())).filter((step) => /^(SCAN|SEARCH|USE TEMP)/.test(step));
        expect(plan.filter((step) => step !== "SCAN json_each VIRTUAL TABLE INDEX 1:")).toEqual([
          `SEARCH share_events USING INDEX sqlite_autoindex_share_events_1 (${ranges[index]})`,
          expect.stringMatching(/^SEARCH sessions USING .*INDEX .*\(session_id=\?\)$/),
        ]);
      }
    },
  );

  it.each([undefined, "a" as ShareId])("findRangeEnd of the share %s reads only the key of events", async (only) => {
    const plan = await planOf(findRangeEnd(database.relaxed, { share_id: "a", position: 1 }, only).compile());
    const range = only === undefined ? "(share_id,position)>(?,?)" : "share_id=? AND position>?";
    expect(plan).toEqual([`SEARCH share_events USING COVERING INDEX sqlite_autoindex_share_events_1 (${range})`]);
  });

  it("findMembers begins with the share's filter, not with the sessions of the group", async () => {
    const query = findMembers(database.relaxed, { groupId: "1", filter: "$share/a/b" }).limit(1);
    expect((await planOf(query.compile())).filter((step) => /^(SCAN|SEARCH)/.test(step))).toEqual([
      "SEARCH session_subscriptions USING INDEX session_subscriptions_of_shares (filter=?)",
      expect.stringMatching(/^SEARCH sessions USING INDEX .*\(session_id=\?\)$/),
    ]);
  });

  it.each([undefined, idOf(1)])(
    "findWithoutMember looks each filter up, and reads no other filter or session (besides %s)",
    async (besides) => {
      const given = { groupId: "1", filters: ["$share/a/b"], ...(besides && { besides }) };
      const query = findWithoutMember(database, given).compile(database.relaxed);
      expect((await planOf(query)).filter((step) => /^(SCAN|SEARCH) session/.test(step))).toEqual([
        "SEARCH session_subscriptions USING INDEX session_subscriptions_of_shares (filter=?)",
        expect.stringMatching(/^SEARCH sessions USING INDEX .*\(session_id=\?\)$/),
      ]);
    },
  );

  it.each([undefined, { scope: "a", key: "b" }])(
    "a count of a page of publish keys after %j reads only their index",
    async (after) => {
      const plan = await planOf(countPage(database.relaxed, defaultGroupId, after).compile());
      const range = after === undefined ? "" : " AND \\(scope,key\\)>\\(\\?,\\?\\)";
      const search = new RegExp(`^SEARCH publish_keys USING COVERING INDEX .*\\(group_id=\\?${range}\\)$`);
      expect(plan.filter((step) => /publish_keys|TEMP/.test(step))).toEqual([expect.stringMatching(search)]);
    },
  );

  it("findPlaces finds shares by filter, and the oldest event of each in an index", async () => {
    const plan = await planOf(findPlaces(database, defaultGroupId, ["$share/a/b" as TopicFilter]).compile());
    expect(plan.filter((step) => /^(SCAN|SEARCH) (share|oldest)/.test(step))).toEqual([
      expect.stringMatching(/^SEARCH shares USING INDEX .*\(group_id=\? AND filter=\?\)$/),
      expect.stringMatching(
        /^SEARCH share_events USING INDEX sqlite_autoindex_share_events_1 \(share_id=\? AND position=\?\)/,
      ),
      expect.stringMatching(/^SEARCH oldest USING COVERING INDEX sqlite_autoindex_share_events_1 \(share_id=\?\)$/),
    ]);
  });

  it("subscriptions to one receiver are counted in an index", async () => {
    const { countTo } = createSubscriptionQueries(database.relaxed);
    expect(await planOf(countTo.bind({ receiver: "http://a" }))).toEqual([
      expect.stringMatching(/^SEARCH subscriptions USING COVERING INDEX subscriptions_by_receiver \(receiver=\?\)$/),
    ]);
  });
  it("all subscriptions are counted in an index, which is smaller than the table", async () => {
    const query = createSubscriptionQueries(database.relaxed).count.bind({});
    expect(await planOf(query)).toEqual([expect.stringMatching(/^SCAN subscriptions USING COVERING INDEX/)]);
  });

  it("listing a node's subscriptions uses the index by owner", async () => {
    const { relaxed } = database;
    const query = relaxed.selectFrom("subscriptions").selectAll().where("owner", "=", "a").orderBy("id").compile();
    expect(await planOf(query)).toEqual([expect.stringMatching(/^SEARCH .*subscriptions_by_owner \(owner=\?\)$/)]);
  });

  it.each(indexChecks.map(({ says, query }) => [says, query] as const))(
    "scans neither batches nor blocks to find out that %s",
    async (_, query) => {
      const plan = await planOf(query.compile(database.relaxed));
      expect(plan).not.toEqual([]);
      expect(plan.filter((step) => /^SCAN (batches|blocks)/.test(step))).toEqual([]);
    },
  );

  async function stepsOf(query: Compilable): Promise<readonly string[]> {
    return (await planOf(query.compile())).filter((step) => /^(SCAN|SEARCH|USE TEMP)/.test(step));
  }

  async function planOf(query: CompiledQuery): Promise<readonly string[]> {
    const explained = CompiledQuery.raw(`explain query plan ${query.sql}`, [...query.parameters]);
    const { rows } = await database.relaxed.executeQuery(explained);
    return rows.map((row) => String((row as { detail: unknown }).detail)); // SQLite's name for the text of each step.
  }
});

function matching(...steps: readonly RegExp[]): readonly unknown[] {
  return steps.map((step) => expect.stringMatching(step) as unknown);
}
