import { toFigure } from "../lib/figure.mjs";
import { publishLoad } from "../lib/load.mjs";
import { createDataFolder, removeDataFolder, startBroker } from "../lib/servers.mjs";

const startSecondsMax = 3;
const starts = 3;
const rateShareMin = 0.9;
const residentMbMax = 400;
const connections = 64;
const fillLoad = { connections: 16, eventsPerRequest: 100, warmUpMs: 0, measureMs: 0 };

/** How a store with many events affects the start and the rate of publishing. */
export const stored = {
  name: "stored",
  async measure(context) {
    const full = createDataFolder(context.resultsDir);
    const empty = createDataFolder(context.resultsDir);
    try {
      const fill = await fillUp(context, full);
      const startSeconds = await measureStarts(context, full);
      return [
        ...toFillFigures(context, fill),
        ...toStartFigures(context, startSeconds),
        ...(await measureRates(context, { full, empty })),
      ];
    } finally {
      removeDataFolder(full);
      removeDataFolder(empty);
    }
  },
};

async function fillUp({ main, fillEvents }, dataDir) {
  const broker = await startBroker({ main, dataDir });
  try {
    const { eventsPerSecond } = await publishLoad(broker, { ...fillLoad, events: fillEvents });
    return { eventsPerSecond, peakMb: broker.memory.peakMb };
  } finally {
    await broker.stop();
  }
}

async function measureStarts({ main }, dataDir) {
  const seconds = [];
  for (let start = 0; start < starts; start += 1) {
    const before = performance.now();
    const broker = await startBroker({ main, dataDir });
    seconds.push((performance.now() - before) / 1000);
    await broker.stop();
  }
  return seconds;
}

async function measureRates(context, { full, empty }) {
  const brokers = [];
  try {
    for (const dataDir of [full, empty]) brokers.push(await startBroker({ main: context.main, dataDir }));
    const plan = { connections, ...context.durations };
    for (const broker of brokers) await publishLoad(broker, plan);
    const shares = [];
    for (let round = 0; round < context.rounds; round += 1) {
      // Alternates which broker goes first, because the machine may be warmer or busier in the second half of a round.
      const order = round % 2 === 0 ? [0, 1] : [1, 0];
      const rates = [];
      for (const index of order) rates[index] = (await publishLoad(brokers[index], plan)).eventsPerSecond;
      shares.push(rates[0] / rates[1]);
    }
    return [
      toFigure({
        name: `${eventsLabel(context)} stored: rate as a share of the rate with an empty store`,
        unit: "",
        values: shares,
        atLeast: rateShareMin,
      }),
    ];
  } finally {
    for (const broker of brokers) await broker.stop();
  }
}

function toFillFigures(context, { eventsPerSecond, peakMb }) {
  return [
    toFigure({
      name: `${eventsLabel(context)} stored: rate while filling`,
      unit: "events/s",
      values: [eventsPerSecond],
    }),
    toFigure({
      name: `${eventsLabel(context)} stored: peak memory while filling`,
      unit: "MiB",
      values: [peakMb],
      below: residentMbMax,
    }),
  ];
}

function toStartFigures(context, seconds) {
  return [
    toFigure({ name: `${eventsLabel(context)} stored: start`, unit: "s", values: seconds, below: startSecondsMax }),
  ];
}

function eventsLabel({ fillEvents }) {
  return `${fillEvents.toLocaleString("en")} events`;
}
