import { describe, expect, it } from "vitest";
import { devKey, startAnvil } from "../harness/anvil.ts";
import { type BrokerProcess, startAndKill, startBroker } from "../harness/broker-process.ts";
import { Client } from "../harness/client.ts";
import { groupsEnv } from "../harness/group.ts";
import { createRandom, seedsOf } from "../harness/random.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { until } from "../harness/until.ts";
import { KeyedLoad } from "./support/keyed-load.ts";
import { replayAll, untilSteady } from "./support/replay.ts";

const seeds = seedsOf("CHECKS_KILL_SEEDS", [20_261_122]);
const rounds = Number(process.env["CHECKS_KILL_ROUNDS"] ?? "3");
const topics = ["once/a", "once/b"];
const producersPerTopic = 4;
const countUntilKillMax = 60;
const blockTimeS = 0.25;
/** Every wait has its own timeout. This one ends a test that hangs elsewhere. */
const timeoutMs = 60_000 * (rounds + 4);

/** Kills the broker while producers repeat every request until it is answered. Then checks that each key has one event. */
async function killUnderKeys(seed: number, env: Readonly<Record<string, string>>): Promise<void> {
  const random = createRandom(seed);
  using folder = createTempFolder();
  const options = { dataDir: folder.path, env: { STELE_LOG_LEVEL: "warn", ...env } };
  const load = new KeyedLoad(topics, String(seed));
  const start = async (): Promise<BrokerProcess> => {
    const broker = await startBroker(options);
    await using client = new Client(broker.url);
    await until("the broker is ready", () => client.isReady(), { timeoutMs: 60_000 });
    for (const topic of topics) await client.open(topic);
    await load.pointTo(broker.url);
    return broker;
  };
  for (let round = 0; round < rounds; round += 1) {
    await using broker = await start();
    if (round === 0) load.start(producersPerTopic);
    const bound = load.answered + 1 + random.below(countUntilKillMax);
    await until(`${bound} publishes are answered`, () => load.answered >= bound, { timeoutMs: 60_000 });
    await broker.kill();
    if (random.fraction() < 0.2) await startAndKill(options, random.below(600));
  }
  await using broker = await start();
  await load.finish();
  await load.repeatAll();
  await using client = new Client(broker.url);
  await untilSteady(client);
  const events = await replayAll(client);
  const idsByContent = new Map<string, string[]>();
  for (const { content, eventId } of events) {
    const text = Buffer.from(content, "base64").toString();
    idsByContent.set(text, [...(idsByContent.get(text) ?? []), eventId]);
  }
  const wrong = load.publishes.filter(({ content, eventIds }) => {
    const ids = idsByContent.get(content) ?? [];
    return ids.length !== 1 || eventIds.size !== 1 || !eventIds.has(ids[0] ?? "");
  });
  expect(wrong).toEqual([]);
  expect(events).toHaveLength(load.publishes.length);
  const repeated = load.publishes.filter(({ tries }) => tries > 2).length;
  process.stdout.write(
    `kill -9 with keys, seed ${seed}: ${events.length} keys, ${repeated} repeated after a failure, ${rounds} kills\n`,
  );
  await load.close();
  expect((await broker.stop()).code).toBe(0);
}

describe.each(seeds)("each publish key yields one event despite kill -9 of the broker, seed %d", (seed) => {
  it(
    `each key yields one event in ${rounds} rounds on the embedded chain`,
    async () => killUnderKeys(seed, {}),
    timeoutMs,
  );

  it(
    `each key yields one event in ${rounds} rounds on anvil`,
    async () => {
      await using anvil = await startAnvil({ blockTimeS });
      await killUnderKeys(seed, groupsEnv([{ id: "1", endpoints: [anvil.url], privateKey: devKey(0), pollMs: 100 }]));
    },
    timeoutMs,
  );
});
