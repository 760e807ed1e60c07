import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { toFigure } from "../lib/figure.mjs";
import { createDataFolder, removeDataFolder, startBroker, topic } from "../lib/servers.mjs";

const subscriptions = 100_000;
const searchMsMax = 100;
const searchesPerRound = 10;
const historyScript = fileURLToPath(new URL("../../../tools/fill-history.mjs", import.meta.url));
const historySubscriptions = 1_000_000;
const mebibyte = 2 ** 20;
const fillScript = fileURLToPath(new URL("../../../tools/fill-subscriptions.mjs", import.meta.url));

/** Query strings of searches that find a full page, or nothing. */
const searches = {
  "first page": "limit=50",
  "by host": "host=127.0.0.1:65535",
  "by prefix, nothing": "prefix=none",
  "by failure, nothing": "failingMsMin=1",
  "by state, nothing": "state=suspended",
  "by lag": "lagMin=1&limit=50",
};

/** Measures the memory for the attempts of a million subscriptions, and the time to record one. The target for the memory is the history's own bound. */
function measureHistory() {
  const order = ["--expose-gc", historyScript, String(historySubscriptions)];
  const { status, stdout, stderr } = spawnSync(process.execPath, order, { encoding: "utf8" });
  if (status !== 0) throw new Error(`the history was not filled: ${stderr}`);
  const { statedBytes, filled } = JSON.parse(stdout);
  const of = `admin, attempts of ${historySubscriptions.toLocaleString("en")} subscriptions`;
  return Object.entries(filled).flatMap(([name, { bytes, microseconds }]) => [
    toFigure({
      name: `${of}, ${name}, memory`,
      unit: "MiB",
      values: [bytes / mebibyte],
      below: statedBytes / mebibyte,
    }),
    toFigure({ name: `${of}, ${name}, time of one`, unit: "µs", values: [microseconds] }),
  ]);
}

/** Operators' searches among many subscriptions. */
export const admin = {
  name: "admin",
  async measure(context) {
    const dataDir = createDataFolder(context.resultsDir);
    try {
      await (await startBroker({ main: context.main, dataDir })).stop();
      const order = [fillScript, dataDir, String(subscriptions), "http://127.0.0.1:65535", topic];
      if (spawnSync(process.execPath, order, { stdio: "inherit" }).status !== 0)
        throw new Error("adding the subscriptions failed");
      // Deliveries are paused, because their start would slow the searches down.
      const broker = await startBroker({ main: context.main, dataDir, settings: { STELE_DELIVERIES: "paused" } });
      try {
        return [...(await measureSearches(context, broker.port)), ...measureHistory()];
      } finally {
        await broker.stop();
      }
    } finally {
      removeDataFolder(dataDir);
    }
  },
};

async function measureSearches({ rounds }, port) {
  const values = Object.fromEntries(Object.keys(searches).map((name) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, query] of Object.entries(searches)) values[name].push(await worstOf(port, query));
  }
  return Object.entries(values).map(([name, found]) =>
    toFigure({
      name: `admin, search among ${subscriptions.toLocaleString("en")} subscriptions ${name}, slowest of ${searchesPerRound}`,
      unit: "ms",
      values: found,
      below: searchMsMax,
    }),
  );
}

async function worstOf(port, query) {
  let worst = 0;
  for (let count = 0; count < searchesPerRound; count += 1) {
    const before = performance.now();
    const response = await fetch(`http://127.0.0.1:${port}/admin/v1/subscriptions?${query}`);
    const { items } = await response.json();
    worst = Math.max(worst, performance.now() - before);
    if (!Array.isArray(items)) throw new Error(`${query} failed: ${response.status}`);
  }
  return worst;
}
