import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Child } from "../lib/child.mjs";
import { toFigure } from "../lib/figure.mjs";
import { callRest } from "../lib/rest.mjs";
import { createDataFolder, removeDataFolder, startBroker, topic } from "../lib/servers.mjs";
import { contentOf } from "../load/request.mjs";

const answerSecondsMax = 2;
const residentMbMax = 400;
const delayMsMax = 100;
/** Events that wait for each subscription. */
const eventsBehind = 100;
const subscribesPerBatch = 500;
/** How long the start is watched after its first answer, in milliseconds. */
const watchMs = 10_000;
const receiverScript = fileURLToPath(new URL("../callback-receiver.mjs", import.meta.url));

/** Starts of a broker that owes events to many subscriptions. */
export const starts = {
  name: "starts",
  async measure(context) {
    const dataDir = createDataFolder(context.resultsDir);
    const receiver = new Child([receiverScript], { ipc: true });
    try {
      const [, port] = await receiver.waitFor(/listening on (\d+)/);
      await fill(context, { dataDir, receiverPort: Number(port) });
      const runs = [];
      for (let round = 0; round < context.rounds; round += 1) runs.push(await measureStart(context, dataDir));
      return toFigures(context, runs);
    } finally {
      await receiver.stop();
      removeDataFolder(dataDir);
    }
  },
};

/** The broker delivers nothing while it is filled. */
async function fill({ main, subscriptionsBehind }, { dataDir, receiverPort }) {
  const settings = { ...limits, STELE_DELIVERIES: "paused" };
  const broker = await startBroker({ main, dataDir, settings });
  try {
    for (let made = 0; made < subscriptionsBehind; made += subscribesPerBatch) {
      await subscribeMany(broker, { from: made, receiverPort });
    }
    const publish = (_, index) => callRest(broker.port, "publish", { topic, content: contentOf(index) });
    await Promise.all(Array.from({ length: eventsBehind }, publish));
  } finally {
    await broker.stop();
  }
}

const limits = { STELE_CALLBACK_SUBSCRIPTIONS_PER_RECEIVER_MAX: "100000" };

async function subscribeMany({ port }, { from, receiverPort }) {
  const calls = Array.from({ length: subscribesPerBatch }, (_, index) => {
    const url = `http://127.0.0.1:${receiverPort}/${from + index}`;
    return { jsonrpc: "2.0", id: index, method: "subscribe", params: { topic, url } };
  });
  const response = await fetch(`http://127.0.0.1:${port}/jsonrpc`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(calls),
  });
  const refused = (await response.json()).find(({ error }) => error !== undefined);
  if (refused !== undefined) throw new Error(`subscribe failed: ${JSON.stringify(refused)}`);
}

/** The broker is killed afterwards, so that the next start owes nearly as much. */
async function measureStart({ main }, dataDir) {
  const before = performance.now();
  const broker = await startBroker({ main, dataDir, settings: limits });
  const answerSeconds = (performance.now() - before) / 1000;
  await wait(watchMs);
  const metrics = await (await fetch(`http://127.0.0.1:${broker.port}/metrics`)).text();
  const { peakMb } = broker.memory;
  await broker.kill();
  const [, delaySeconds] = /^nodejs_eventloop_lag_p99_seconds (\S+)$/m.exec(metrics) ?? [];
  return { answerSeconds, peakMb, delayMs: Number(delaySeconds) * 1000 };
}

function toFigures({ subscriptionsBehind }, runs) {
  const named = (what) => `start, ${subscriptionsBehind.toLocaleString("en")} subscriptions behind: ${what}`;
  const valuesOf = (key) => runs.map((run) => run[key]);
  return [
    { name: named("first answer"), unit: "s", values: valuesOf("answerSeconds"), below: answerSecondsMax },
    { name: named("peak memory"), unit: "MiB", values: valuesOf("peakMb"), below: residentMbMax },
    { name: named("event loop delay, p99"), unit: "ms", values: valuesOf("delayMs"), below: delayMsMax },
  ].map(toFigure);
}
