import { toFigure } from "../lib/figure.mjs";
import { publishLoad } from "../lib/load.mjs";
import { repeat } from "../lib/rounds.mjs";
import { createDataFolder, removeDataFolder, startBareFastify, startBroker } from "../lib/servers.mjs";

const residentMbMax = 400;
const p99MsMax = 100;

/** Publishing over 256 connections, as a share of the baseline's rate. */
export const publish256 = {
  name: "publish-256",
  measure: (context) => measureShare(context, { connections: 256, shareMin: 0.6 }),
};

/** Publishing over 64 connections, as a share of the baseline's rate, and as a multiple of the rate without batching. */
export const publish64 = {
  name: "publish-64",
  measure: (context) => measureShare(context, { connections: 64, shareMin: 0.45, batchingGainMin: 10 }),
};

/** Publishing over one connection, one event after another. */
export const publishOne = {
  name: "publish-one",
  async measure(context) {
    return withServers(context, { isBatchingOffToo: false }, async ({ broker }) => {
      const plan = { connections: 1, ...context.durations };
      const warmUp = () => publishLoad(broker, toWarmUp(plan, context));
      const runs = await repeat(context, () => publishLoad(broker, plan), warmUp);
      return [
        toFigure({
          name: "publish, 1 connection: median",
          unit: "ms",
          values: runs.map((run) => run.p50Ms),
          below: 2,
        }),
        toFigure({ name: "publish, 1 connection: p99", unit: "ms", values: runs.map((run) => run.p99Ms) }),
      ];
    });
  },
};

async function measureShare(context, { connections, shareMin, batchingGainMin }) {
  const isBatchingOffToo = batchingGainMin !== undefined;
  return withServers(context, { isBatchingOffToo }, async (servers) => {
    const plan = { connections, ...context.durations };
    const warmUp = () => measureRound(servers, toWarmUp(plan, context));
    const rounds = await repeat(context, () => measureRound(servers, plan), warmUp);
    const name = (what) => `publish, ${connections} connections: ${what}`;
    const of = (server, key) => rounds.map((round) => round[server][key]);
    const quotients = (over, under, key) => rounds.map((round) => round[over][key] / round[under][key]);
    const figures = [
      { name: name("rate"), unit: "events/s", values: of("broker", "eventsPerSecond") },
      { name: name("rate of the baseline"), unit: "requests/s", values: of("bare", "eventsPerSecond") },
      {
        name: name("share of the baseline"),
        unit: "",
        values: quotients("broker", "bare", "eventsPerSecond"),
        atLeast: shareMin,
      },
      { name: name("median"), unit: "ms", values: of("broker", "p50Ms") },
      { name: name("p99"), unit: "ms", values: of("broker", "p99Ms"), below: p99MsMax },
      { name: name("median of the baseline"), unit: "ms", values: of("bare", "p50Ms") },
      { name: name("p99 of the baseline"), unit: "ms", values: of("bare", "p99Ms") },
      { name: name("processor time of the broker"), unit: "µs/event", values: of("broker", "serverCpuUsPerEvent") },
      { name: name("processor time of the baseline"), unit: "µs/request", values: of("bare", "serverCpuUsPerEvent") },
      { name: name("processor share of the load generator"), unit: "", values: of("bare", "clientCpuShare") },
      { name: name("peak memory"), unit: "MiB", values: [servers.broker.memory.peakMb], below: residentMbMax },
    ];
    if (isBatchingOffToo) {
      figures.push(
        { name: name("rate with batching off"), unit: "events/s", values: of("single", "eventsPerSecond") },
        {
          name: name("gain by batching"),
          unit: "×",
          values: quotients("broker", "single", "eventsPerSecond"),
          atLeast: batchingGainMin,
        },
      );
    }
    return figures.map(toFigure);
  });
}

/** The broker's rate rises for about ten seconds, while V8 compiles its code. */
function toWarmUp(plan, { warmUpSeconds }) {
  return { ...plan, warmUpMs: 0, measureMs: warmUpSeconds * 1000 };
}

/** Loads each server once, one after another, so that other work on the machine slows all of them. */
async function measureRound(servers, plan) {
  const round = {};
  for (const [name, server] of Object.entries(servers)) round[name] = await publishLoad(server, plan);
  return round;
}

/** Starts the servers, calls `use` with them, and stops them. */
async function withServers(context, { isBatchingOffToo }, use) {
  const folders = [];
  const servers = {};
  const start = async (settings) => {
    const dataDir = createDataFolder(context.resultsDir);
    folders.push(dataDir);
    return startBroker({ main: context.main, dataDir, settings });
  };
  try {
    servers.bare = await startBareFastify();
    servers.broker = await start({});
    if (isBatchingOffToo) servers.single = await start({ STELE_TRANSACTION_EVENTS_MAX: "1" });
    return await use(servers);
  } finally {
    for (const server of Object.values(servers)) await server.stop();
    for (const folder of folders) removeDataFolder(folder);
  }
}
