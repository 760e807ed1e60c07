import { measureComparison } from "../lib/comparison.mjs";
import { publishLoad } from "../lib/load.mjs";
import { findNatsServer, startNats } from "../lib/nats.mjs";
import { createDataFolder, removeDataFolder, startBroker } from "../lib/servers.mjs";

const connectionCounts = [1, 64, 256];

/** Publishing, compared with NATS JetStream, which syncs each message to the disk as the broker syncs each transaction. */
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

function measureBoth(context, [broker, jetStream], connections) {
  const plan = { connections, ...context.durations };
  return measureComparison(context, {
    title: `${connections} ${connections === 1 ? "publisher" : "publishers"}`,
    peerName: "JetStream",
    runs: {
      broker: () => publishLoad(broker, plan),
      peer: () => publishLoad(jetStream, { ...plan, protocol: "nats" }),
    },
  });
}
