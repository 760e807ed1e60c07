import { describe, expect, it } from "vitest";
import { type BrokerProcess, startBroker } from "../harness/broker-process.ts";
import { Cluster } from "../harness/cluster.ts";
import { HttpClient } from "../harness/http-client.ts";
import { hasPostgres, titleOf } from "../harness/postgres.ts";
import { createRandom, seedsOf } from "../harness/random.ts";
import { startReceiver } from "../harness/receiver.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { until } from "../harness/until.ts";
import { countMissing, expectNothingPassed, OperatedSubscriptions, operatedTopic } from "./support/operated.ts";

const seeds = seedsOf("CHECKS_OPERATE_SEEDS", [20_261_123]);
const rounds = Number(process.env["CHECKS_OPERATE_ROUNDS"] ?? "4");
const timeoutMs = 240_000;
const quick = { STELE_CALLBACK_BACKOFF_MIN_MS: "20", STELE_CALLBACK_BACKOFF_MAX_MS: "100", STELE_LOG_LEVEL: "warn" };

describe.each(seeds)("orders of an operator under load, seed %i", (seed) => {
  it(
    "kill -9 in the middle: nothing that was not skipped is missed, and order holds",
    async () => {
      using folder = createTempFolder();
      const random = createRandom(seed);
      let broker: BrokerProcess | undefined;
      const operated = new OperatedSubscriptions(async (request) => {
        await using http = new HttpClient(broker?.url ?? "");
        return await http.send(request);
      }, random);
      await using moved = await startReceiver();
      await using skipped = await startReceiver();
      const ids: string[] = [];
      for (let round = 0; round <= rounds; round += 1) {
        broker = await startBroker({ dataDir: folder.path, env: quick });
        if (round === 0) {
          await fetch(`${broker.url}/rest/open?topic=${operatedTopic}`);
          ids.push(await operated.subscribe(moved.url), await operated.subscribe(skipped.url));
        }
        if (round === rounds) break;
        operated.start(ids[0] ?? "", ids[1] ?? "");
        const due = operated.published + 30 + random.below(60);
        await until("events are published", () => operated.published >= due);
        await broker.kill();
        await operated.stop();
      }
      await operated.untilDone(ids);
      const sequences = await operated.listSequences();
      expectNothingPassed(moved, sequences);
      expect(countMissing(skipped, sequences)).toBeLessThanOrEqual(operated.skips);
      expect(operated.carriedOut).toBeGreaterThan(10 * rounds);
      expect((await broker?.stop())?.code).toBe(0);
    },
    timeoutMs,
  );

  it.runIf(hasPostgres)(
    titleOf("three nodes, each of which takes any order: the same"),
    async () => {
      await using cluster = await Cluster.start({ env: quick, seed });
      const operated = new OperatedSubscriptions(
        async (request) => cluster.random.pick(cluster.running).client.http.send(request),
        cluster.random,
      );
      await using moved = await startReceiver();
      await using skipped = await startReceiver();
      await cluster.client.open(operatedTopic);
      const ids = [await operated.subscribe(moved.url), await operated.subscribe(skipped.url)] as const;
      for (const node of cluster.nodes) {
        operated.start(...ids);
        const due = operated.published + 20;
        await until("events are published", () => operated.published >= due, { timeoutMs: 60_000 });
        await node.kill();
        const more = operated.published + 20;
        await until("the others go on", () => operated.published >= more, { timeoutMs: 60_000 });
        await operated.stop();
        await node.start();
      }
      await operated.untilDone(ids);
      const sequences = await operated.listSequences();
      expectNothingPassed(moved, sequences);
      expect(countMissing(skipped, sequences)).toBeLessThanOrEqual(operated.skips);
      expect(operated.carriedOut).toBeGreaterThan(10);
      expect((await cluster.stop()).code).toBe(0);
    },
    timeoutMs,
  );
});
