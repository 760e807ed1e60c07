import { toFigure } from "../lib/figure.mjs";
import { publishLoad } from "../lib/load.mjs";
import { createDataFolder, removeDataFolder, startBroker } from "../lib/servers.mjs";

const connections = 16;
const eventsPerRequest = 100;
const name = (what) => `batches of ${eventsPerRequest}, ${connections} connections: ${what}`;

/** Publishing in JSON-RPC batches, whose events share the cost of one HTTP request. */
export const batches = {
  name: "batches",
  async measure({ main, resultsDir, rounds, durations }) {
    const dataDir = createDataFolder(resultsDir);
    try {
      const broker = await startBroker({ main, dataDir });
      try {
        const plan = { connections, eventsPerRequest, ...durations };
        await publishLoad(broker, plan);
        const runs = [];
        for (let round = 0; round < rounds; round += 1) runs.push(await publishLoad(broker, plan));
        return toFigures(runs, broker.memory.peakMb);
      } finally {
        await broker.stop();
      }
    } finally {
      removeDataFolder(dataDir);
    }
  },
};

function toFigures(runs, peakMb) {
  const of = (key) => runs.map((run) => run[key]);
  return [
    { name: name("rate"), unit: "events/s", values: of("eventsPerSecond") },
    { name: name("processor time"), unit: "µs/event", values: of("serverCpuUsPerEvent") },
    { name: name("median of a batch"), unit: "ms", values: of("p50Ms") },
    { name: name("p99 of a batch"), unit: "ms", values: of("p99Ms") },
    { name: name("peak memory"), unit: "MiB", values: [peakMb] },
  ].map(toFigure);
}
