import { expect, it } from "vitest";
import { devKey, startAnvil } from "../../harness/anvil.ts";
import { startBroker } from "../../harness/broker-process.ts";
import { Client } from "../../harness/client.ts";
import { groupsEnv } from "../../harness/group.ts";
import { TailClient } from "../../harness/tail-client.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";
import { until } from "../../harness/until.ts";

const recoverMs = 60_000;
const topic = "r/a";
const query = "topic=r/%23&after=OFFSET_FIRST";

it(
  "after a reorganisation deeper than the finality setting, a tail gets a resync notice and then every event of the new branch",
  async () => {
    using folder = createTempFolder();
    await using anvil = await startAnvil({});
    const group = { id: "1", endpoints: [anvil.url], privateKey: devKey(0), finality: "latest", pollMs: 50 };
    const env = { ...groupsEnv([group]), STELE_LOG_LEVEL: "warn" };
    await using broker = await startBroker({ dataDir: folder.path, env });
    await using client = new Client(broker.url);
    await until("the broker is ready", () => client.isReady());
    await client.open(topic);
    await anvil.request("anvil_mine", ["0x14"]);
    const tail = new TailClient(query);
    let isOver = false;
    const reading = tail.read(broker.url, () => !isOver);
    const sent: string[] = [];
    for (let index = 1; index <= 5; index += 1) sent.push((await client.publish(topic, `event ${index}`)).eventId);
    await until("the tail has all events", () => tail.events.length === 5);
    await anvil.request("anvil_reorg", [3, []]);
    await until("the tail gets the notice resync", () => tail.notices.includes("resync"), { timeoutMs: recoverMs });
    await until("all events are back", async () => (await client.state(topic)).sequenceNumber === 5, {
      timeoutMs: recoverMs,
    });
    await until("the last event is repeated", () => tail.events.filter(({ text }) => text === "event 5").length === 2);
    isOver = true;
    await client.publish(topic, "event 6");
    await reading;
    const again = tail.events.slice(5, 8);
    expect(again.map(({ text }) => text)).toEqual(["event 3", "event 4", "event 5"]);
    expect(again.filter(({ eventId }) => sent.includes(eventId))).toEqual([]);

    const late = new TailClient(query);
    late.lastId = sent[4];
    await late.read(broker.url, () => late.events.length < 6);
    expect(late.notices).toEqual(["resync"]);
    expect(late.events.map(({ text }) => text)).toEqual([1, 2, 3, 4, 5, 6].map((index) => `event ${index}`));
  },
  2 * recoverMs,
);
