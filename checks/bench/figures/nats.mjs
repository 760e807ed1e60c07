import { toFigure } from "../lib/figure.mjs";
import { publishLoad } from "../lib/load.mjs";
import { findNatsServer, startNats } from "../lib/nats.mjs";
import { createDataFolder, removeDataFolder, startBroker } from "../lib/servers.mjs";

const connectionCounts = [1, 64, 256];

/** Publishing beside NATS JetStream, which syncs each message to the disk as the broker syncs each transaction. */
export const nats = {
  name: "nats",
  async measure(context) {
    const file = findNatsServer();
    if (file === undefined) {
      context.leaveOut("nats: nats-server is neither on the PATH nor named by BENCH_NATS_SERVER");
      return [];
    }
    const folders = [createDataFolder(context.resultsDir), createDataFolder(context.resultsDir)];
    const servers = [];
    try {
      servers.push(await startBroker({ main: context.main, dataDir: folders[0] }));
      servers.push(await startNats({ file, dataDir: folders[1] }));
      const figures = [];
      for (const connections of connectionCounts) figures.push(...(await measureBoth(context, servers, connections)));
      return figures;
    } finally {
      for (const server of servers) await server.stop();
      folders.forEach(removeDataFolder);
    }
  },
};

async function measureBoth(context, servers, connections) {
  const [broker, jetStream] = servers;
  const plan = { connections, ...context.durations };
  const runs = {
    broker: () => publishLoad(broker, plan),
    jetStream: () => publishLoad(jetStream, { ...plan, protocol: "nats" }),
  };
  const rounds = [];
  for (let round = 0; round <= context.rounds; round += 1) rounds.push(await measureRound(runs, round));
  // The first one is for the compiler.
  return toFigures(rounds.slice(1), connections);
}

/** The one that goes first changes, because the machine may be busier in the second half of a round. */
async function measureRound(runs, round) {
  const order = round % 2 === 0 ? ["broker", "jetStream"] : ["jetStream", "broker"];
  const found = {};
  for (const name of order) found[name] = await runs[name]();
  return found;
}

function toFigures(rounds, connections) {
  const name = (what) => `${connections} ${connections === 1 ? "publisher" : "publishers"}: ${what}`;
  const of = (who, key) => rounds.map((round) => round[who][key]);
  const shares = rounds.map(({ broker, jetStream }) => broker.eventsPerSecond / jetStream.eventsPerSecond);
  return [
    { name: name("rate"), unit: "events/s", values: of("broker", "eventsPerSecond") },
    { name: name("rate of JetStream"), unit: "events/s", values: of("jetStream", "eventsPerSecond") },
    { name: name("rate as a share of JetStream's"), unit: "", values: shares },
    { name: name("median"), unit: "ms", values: of("broker", "p50Ms") },
    { name: name("median of JetStream"), unit: "ms", values: of("jetStream", "p50Ms") },
    { name: name("p99"), unit: "ms", values: of("broker", "p99Ms") },
    { name: name("p99 of JetStream"), unit: "ms", values: of("jetStream", "p99Ms") },
    { name: name("processor time"), unit: "µs/event", values: of("broker", "serverCpuUsPerEvent") },
    { name: name("processor time of JetStream"), unit: "µs/event", values: of("jetStream", "serverCpuUsPerEvent") },
  ].map(toFigure);
}
