import { spawnSync } from "node:child_process";
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
/** Time between the broker's first answer and the reading of its metrics. */
const watchMs = 10_000;
const fillScript = fileURLToPath(new URL("../../../tools/fill-subscriptions.mjs", import.meta.url));
const receiverScript = fileURLToPath(new URL("../callback-receiver.mjs", import.meta.url));

/** How long a broker takes to start, and what the start costs, if many subscriptions lag behind. */
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

/** Publishes the events, and adds subscriptions that lag behind them. A script writes the subscriptions, because `subscribe` calls would take minutes. */
async function fill({ main, subscriptionsBehind }, { dataDir, receiverPort }) {
  const broker = await startBroker({ main, dataDir, settings: limits });
  try {
    const publish = (_, index) => callRest(broker.port, "publish", { topic, content: contentOf(index) });
    await Promise.all(Array.from({ length: eventsBehind }, publish));
  } finally {
    await broker.stop();
  }
  const url = `http://127.0.0.1:${receiverPort}`;
  const { status } = spawnSync(process.execPath, [fillScript, dataDir, String(subscriptionsBehind), url, topic], {
    stdio: "inherit",
  });
  if (status !== 0) throw new Error("The subscriptions were not added.");
}

const limits = { STELE_CALLBACK_SUBSCRIPTIONS_PER_RECEIVER_MAX: "100000" };

/** Measures one start. Kills the broker afterwards, so that the subscriptions are nearly as far behind at the next start. */
async function measureStart({ main }, dataDir) {
  const before = performance.now();
  const broker = await startBroker({ main, dataDir, settings: limits });
  const answerSeconds = (performance.now() - before) / 1000;
  const { cpuSeconds } = broker;
  await wait(watchMs);
  const metrics = await (await fetch(`http://127.0.0.1:${broker.port}/metrics`)).text();
  const { peakMb } = broker.memory;
  await broker.kill();
  const [, delaySeconds] = /^nodejs_eventloop_lag_p99_seconds (\S+)$/m.exec(metrics) ?? [];
  return { answerSeconds, cpuSeconds, peakMb, delayMs: Number(delaySeconds) * 1000 };
}

function toFigures({ subscriptionsBehind }, runs) {
  const named = (what) => `start, ${subscriptionsBehind.toLocaleString("en")} subscriptions behind: ${what}`;
  const valuesOf = (key) => runs.map((run) => run[key]);
  return [
    { name: named("first answer"), unit: "s", values: valuesOf("answerSeconds"), below: answerSecondsMax },
    { name: named("processor time until the first answer"), unit: "s", values: valuesOf("cpuSeconds") },
    { name: named("peak memory"), unit: "MiB", values: valuesOf("peakMb"), below: residentMbMax },
    { name: named("event loop delay, p99"), unit: "ms", values: valuesOf("delayMs"), below: delayMsMax },
  ].map(toFigure);
}
