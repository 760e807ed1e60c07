import { measureComparison } from "../lib/comparison.mjs";
import { fanOutLoad, publishLoad } from "../lib/load.mjs";
import { findRabbitMq, startRabbitMq } from "../lib/rabbitmq.mjs";
import { createDataFolder, removeDataFolder, startStompBroker } from "../lib/servers.mjs";

const peerName = "RabbitMQ";
const publishers = 16;
const receivers = 100;
/** Events that some receiver may not have received yet. */
const inFlightMax = 64;

/** STOMP, compared with RabbitMQ's plug-in: publishing persistent messages to a durable queue, and one publisher with many receivers. */
export const stomp = {
  name: "stomp",
  async measure(context) {
    const file = findRabbitMq();
    if (file === undefined)
      context.leaveOut("stomp: RabbitMQ; rabbitmq-server is neither on the PATH nor named by BENCH_RABBITMQ_SERVER");
    const folders = [createDataFolder(context.resultsDir), createDataFolder(context.resultsDir)];
    const servers = [];
    try {
      servers.push(await startStompBroker({ main: context.main, dataDir: folders[0] }));
      if (file !== undefined) servers.push(await startRabbitMq({ file, dataDir: folders[1] }));
      return [...(await measurePublish(context, servers)), ...(await measureFanOut(context, servers))];
    } finally {
      for (const server of servers) await server.stop();
      folders.forEach(removeDataFolder);
    }
  },
};

function measurePublish(context, [broker, rabbit]) {
  const plan = { protocol: "stomp", connections: publishers, ...context.durations };
  return measureComparison(context, {
    title: `STOMP, SEND with receipt, ${publishers} connections`,
    peerName,
    shareMin: 0.5,
    runs: {
      broker: () => publishLoad(broker, { ...plan, destination: "bench/load" }),
      peer: rabbit && (() => publishLoad(rabbit, { ...plan, destination: "/queue/bench" })),
    },
  });
}

function measureFanOut(context, [broker, rabbit]) {
  const plan = { connections: receivers, inFlightMax, ...context.durations };
  return measureComparison(context, {
    title: `STOMP, 1 publisher to ${receivers} connections`,
    peerName,
    counted: "message",
    shareMin: 1,
    runs: {
      broker: () => fanOutLoad(broker, { ...plan, destination: "bench/fan-out" }),
      peer: rabbit && (() => fanOutLoad(rabbit, { ...plan, destination: "/topic/bench" })),
    },
  });
}
