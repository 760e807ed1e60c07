import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ChainProxy, pass, type Treatment } from "../faults/support/chain-proxy.ts";
import { answer } from "../faults/support/chain-treatments.ts";
import { addressOf, batchOf, listSkipped, type RawBatch, registry, Stranger } from "../faults/support/stranger.ts";
import { devKey, startAnvil } from "../harness/anvil.ts";
import { startBroker } from "../harness/broker-process.ts";
import { Client } from "../harness/client.ts";
import { groupsEnv } from "../harness/group.ts";
import { startReceiver } from "../harness/receiver.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { until } from "../harness/until.ts";
import { forgerOfContracts, forgerOfLogs } from "./support/forger.ts";

/** More than one page of `list`. */
const topicsCount = 130;
const rounds = 4;
/** Each round has 8 batches of 2 events, one event in a new topic, and one event of the first broker. */
const eventsCount = rounds * 18;
const gas = 100_000_000n;
const topic = (index: number): string => `same/${index}`;

/** Refuses all log queries except those for one kind of log, or for one account's rejections. So the broker must read one kind of log at a time. */
const refuseTogether: Treatment = (passage) => {
  const [call] = passage.calls;
  const [filter] = (call?.params ?? []) as readonly [{ readonly topics?: readonly unknown[] }?];
  const [kinds, ...others] = filter?.topics ?? [];
  const isSmall = others.length > 0 || (Array.isArray(kinds) && kinds.length === 1);
  const isRefused = call?.method === "eth_getLogs" && !isSmall;
  const error = { code: -32_005, message: "query returned more than 10000 results" };
  return isRefused ? answer(passage, { error }) : pass(passage);
};

function envOf(url: string, key: number): Record<string, string> {
  return {
    ...groupsEnv([
      { id: "1", endpoints: [url], privateKey: devKey(key), pollMs: 50, ...(key === 0 ? {} : { registry }) },
    ]),
    STELE_LOG_LEVEL: "warn",
  };
}

/** Everything that a client can see of the index. */
async function viewOf(client: Client): Promise<unknown> {
  const pages = await Promise.all([0, 1].map((page) => client.list(page, 99)));
  const states = [];
  for (let index = 0; index < topicsCount; index += 1) states.push(await client.state(topic(index)));
  await using receiver = await startReceiver();
  const id = await client.subscribe({ topic: "#", url: receiver.url, offset: "OFFSET_FIRST" });
  const events = [...(await receiver.waitForCount(eventsCount))];
  await client.unSubscribe(id);
  return { pages, states, events, skipped: await listSkipped(client) };
}

it("a broker that must read one kind of log at a time builds the same index as a broker that reads all kinds at once", async () => {
  await using anvil = await startAnvil({ args: ["--gas-limit", "2000000000", "--no-request-size-limit"] });
  await using proxy = await ChainProxy.start(anvil.url);
  proxy.treat(refuseTogether);
  using folders = createTempFolder();
  const start = (url: string, key: number) =>
    startBroker({ dataDir: join(folders.path, String(key)), env: envOf(url, key) });
  await using plain = await start(anvil.url, 0);
  await using client = new Client(plain.url);
  await until("the first broker is ready", () => client.isReady());
  await client.open("same/first");
  const other = await start(proxy.url, 1);
  const stranger = new Stranger(anvil.url);
  const names = Array.from({ length: topicsCount }, (_, index) => topic(index));
  for (const name of names) await stranger.open(name);

  // In each round, a foreign account fills one block. Its batches do not follow the topic list, some are malformed, and forged logs surround them.
  for (let round = 0; round < rounds; round += 1) {
    await anvil.request("evm_setAutomine", [false]);
    const sent = [await stranger.send({ data: forgerOfLogs(50), gas })];
    const batches: RawBatch[] = [128, 3, 77, 3, 100, 129, 0, 3].map((index, place) =>
      batchOf(topic(index), [`${round} ${place} a`, `${round} ${place} b`]),
    );
    batches.splice(2, 0, batchOf(topic(5), ["bad"], { count: 2 }), {
      ...batchOf(topic(6), ["x"]),
      topic: addressOf("never/opened"),
    });
    sent.push(await stranger.sendPublish(batches, gas));
    sent.push(await stranger.send({ data: forgerOfContracts(40), gas }));
    sent.push(await stranger.sendOpen(`same/late-${round}`, 2_000_000n));
    sent.push(
      await stranger.sendPublish(
        [
          batchOf(`same/late-${round}`, ["at once"]),
          batchOf(topic(3), [{ content: new Uint8Array(300_000), extensions: [] }]),
        ],
        gas,
      ),
    );
    await anvil.request("anvil_mine", ["0x1"]);
    await anvil.request("evm_setAutomine", [true]);
    for (const hash of sent) await stranger.untilMined(hash);
    await client.publish("same/first", `round ${round}`);
  }
  await until("the first index is complete", async () => (await client.state("same/late-3")).sequenceNumber === 1);
  const expected = await viewOf(client);
  {
    await using second = new Client(other.url);
    await until(
      "the second index is complete",
      async () => (await second.state("same/first").catch(() => undefined))?.sequenceNumber === 4,
      { timeoutMs: 60_000 },
    );
    expect(await viewOf(second)).toEqual(expected);
  }
  expect((await other.stop()).code).toBe(0);
  const storeFiles = readdirSync(join(folders.path, "1")).filter((file) => file.startsWith("store.sqlite"));
  for (const file of storeFiles) rmSync(join(folders.path, "1", file));
  await using rebuilt = await start(proxy.url, 1);
  await using third = new Client(rebuilt.url);
  await until(
    "the rebuilt index is complete",
    async () => (await third.state("same/first").catch(() => undefined))?.sequenceNumber === 4,
    { timeoutMs: 60_000 },
  );
  expect(await viewOf(third)).toEqual(expected);
});
