import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Child } from "../lib/child.mjs";
import { toFigure } from "../lib/figure.mjs";
import { callRest } from "../lib/rest.mjs";
import { createDataFolder, removeDataFolder, startBroker } from "../lib/servers.mjs";
import { contentOf } from "../load/request.mjs";

const latencyMs = 20;
const topics = Array.from({ length: 8 }, (_, index) => `faster/${index}`);
const eventsPerTopic = 500;
const events = topics.length * eventsPerTopic;
const publishesAtOnce = 50;
/** Limit of one measurement: delivering all events one by one would take 80 s. */
const measuredMsMax = 8_000;
const pollMs = 10;
const receiverScript = fileURLToPath(new URL("../slow-receiver.mjs", import.meta.url));

const ways = [
  { name: "concurrency 8 over 8 topics", parameters: { concurrency: "8" }, atLeast: 7 },
  { name: "batches of 100", parameters: { batch: "100" }, atLeast: 10 },
];

/** Events a second to a receiver that takes 20 ms for each request, as a multiple of the rate of sending them one by one. */
export const fasterReceivers = {
  name: "faster receivers",
  async measure({ main, resultsDir, rounds }) {
    const dataDir = createDataFolder(resultsDir);
    const receiver = new Child([receiverScript, String(latencyMs)], { ipc: true });
    try {
      const [, port] = await receiver.waitFor(/listening on (\d+)/);
      const broker = await startBroker({ main, dataDir });
      try {
        await publishAll(broker.port);
        const world = { broker, receiver, url: `http://127.0.0.1:${port}/` };
        return toFigures(await measureRounds(rounds, (parameters) => measureRate(world, parameters)));
      } finally {
        await broker.stop();
      }
    } finally {
      await receiver.stop();
      removeDataFolder(dataDir);
    }
  },
};

async function publishAll(port) {
  for (const topic of topics) await callRest(port, "open", { topic });
  const all = Array.from({ length: eventsPerTopic }, (_, index) => topics.map((topic) => ({ topic, index }))).flat();
  for (let start = 0; start < all.length; start += publishesAtOnce) {
    const chunk = all.slice(start, start + publishesAtOnce);
    await Promise.all(chunk.map(({ topic, index }) => callRest(port, "publish", { topic, content: contentOf(index) })));
  }
}

async function measureRounds(rounds, measure) {
  const rates = { usual: [], ways: ways.map(() => []) };
  for (let round = 0; round < rounds; round += 1) {
    rates.usual.push(await measure({}));
    for (const [index, { parameters }] of ways.entries()) rates.ways[index].push(await measure(parameters));
  }
  return rates;
}

async function measureRate({ broker, receiver, url }, parameters) {
  await receiver.ask("forget");
  const startedAt = performance.now();
  const order = { topic: "faster/+", url, offset: "OFFSET_FIRST", ...parameters };
  const subscriptionId = await callRest(broker.port, "subscribe", order);
  let accepted = 0;
  while (accepted < events && performance.now() - startedAt < measuredMsMax) {
    await wait(pollMs);
    ({ accepted } = await receiver.ask("state"));
  }
  const rate = (accepted * 1000) / (performance.now() - startedAt);
  await callRest(broker.port, "unSubscribe", { subscriptionId });
  return rate;
}

function toFigures({ usual, ways: measured }) {
  const head = `callbacks, receiver of ${latencyMs} ms`;
  return [
    { name: `${head}: one by one`, unit: "notifications/s", values: usual },
    ...ways.map(({ name, atLeast }, index) => ({
      name: `${head}: ${name}`,
      unit: "× one by one",
      values: measured[index].map((rate, round) => rate / usual[round]),
      atLeast,
    })),
  ].map(toFigure);
}
