import { toFigure } from "../lib/figure.mjs";
import { publishLoad } from "../lib/load.mjs";
import { createDataFolder, removeDataFolder, startBroker } from "../lib/servers.mjs";
import { openTopics, topicsOf } from "../lib/topics.mjs";

/** A run ends after a number of events, not after a time: a request with 1,000 events may take longer than a short run. */
const load = { connections: 4, eventsPerRequest: 1000, warmUpMs: 0, measureMs: 0 };
const starts = 3;
const residentMbMax = 400;
const startSecondsMax = 3;
const openingSecondsMax = 10;
const costRatioMax = 3;
/** The largest number of topics for which opening and the cost of an event have a target. */
const topicsWithTargetMax = 5000;

/**
 * What the number of topics costs. Each number of topics has its own broker. Every round loads all brokers, one after another, so that other work
 * on the machine slows all of them.
 */
export const topics = {
  name: "topics",
  async measure(context) {
    const cases = [];
    try {
      for (const count of context.topicCounts) cases.push(await openCase(context, count));
      for (let round = 0; round <= context.rounds; round += 1) await loadAll(context, cases, { isMeasured: round > 0 });
      const figures = [...toOpeningFigures(cases), ...toCostFigures(cases), ...toMemoryFigures(cases)];
      return [...figures, ...(await measureStart(context, cases.at(-1)))];
    } finally {
      for (const one of cases) {
        await one.broker.stop();
        removeDataFolder(one.dataDir);
      }
    }
  },
};

async function openCase({ main, resultsDir }, count) {
  const dataDir = createDataFolder(resultsDir);
  const broker = await startBroker({ main, dataDir });
  const openingSeconds = await openTopics(broker.port, topicsOf(count));
  return { count, dataDir, broker, openingSeconds, runs: [], eventCount: 0 };
}

async function loadAll({ topicRunEvents }, cases, { isMeasured }) {
  for (const one of cases) {
    const run = await publishTo(one, topicRunEvents);
    if (isMeasured) one.runs.push(run);
  }
}

async function publishTo(one, events) {
  const run = await publishLoad(one.broker, { ...load, topics: one.count, events });
  one.eventCount += run.eventsTotal;
  return run;
}

/** Fills the store of the broker with the most topics up to `topicEvents` events, and measures how long a restart takes. */
async function measureStart({ main, topicEvents }, one) {
  const missing = topicEvents - one.eventCount;
  if (missing > 0) await publishTo(one, missing);
  const seconds = [];
  for (let start = 0; start < starts; start += 1) {
    await one.broker.stop();
    const before = performance.now();
    one.broker = await startBroker({ main, dataDir: one.dataDir });
    seconds.push((performance.now() - before) / 1000);
  }
  const name = `${title(one)}, ${one.eventCount.toLocaleString("en")} events: start`;
  return [toFigure({ name, unit: "s", values: seconds, below: startSecondsMax })];
}

function toOpeningFigures(cases) {
  return cases.map(({ count, openingSeconds, ...one }) =>
    toFigure({
      name: `${title({ count, ...one })}: opening`,
      unit: "s",
      values: [openingSeconds],
      ...(count <= topicsWithTargetMax ? { below: openingSecondsMax } : {}),
    }),
  );
}

function toCostFigures(cases) {
  const [first] = cases;
  return cases.flatMap((one) => {
    const costs = one.runs.map((run) => run.serverCpuUsPerEvent);
    const ratios = costs.map((cost, round) => cost / first.runs[round].serverCpuUsPerEvent);
    const figures = [
      { name: `${title(one)}: rate`, unit: "events/s", values: one.runs.map((run) => run.eventsPerSecond) },
      { name: `${title(one)}: processor time`, unit: "µs/event", values: costs },
    ];
    if (one !== first) {
      const target = one.count <= topicsWithTargetMax ? { below: costRatioMax } : {};
      figures.push({ name: `${title(one)}: times one topic`, unit: "×", values: ratios, ...target });
    }
    return figures.map(toFigure);
  });
}

/** Reads the memory after all rounds, so that each broker has had time to release memory. */
function toMemoryFigures(cases) {
  return cases.flatMap((one) => {
    const { peakMb, residentMb } = one.broker.memory;
    return [
      { name: `${title(one)}: peak memory`, unit: "MiB", values: [peakMb], below: residentMbMax },
      { name: `${title(one)}: memory after`, unit: "MiB", values: [residentMb] },
    ].map(toFigure);
  });
}

function title({ count }) {
  return count === 1 ? "1 topic" : `${count.toLocaleString("en")} topics`;
}
