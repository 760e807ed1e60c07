import { measureComparison } from "../lib/comparison.mjs";
import { mqttLoad } from "../lib/mqtt-load.mjs";
import { startMosquittoWeb, startMqttBroker } from "../lib/mqtt-servers.mjs";
import { findProgram } from "../lib/programs.mjs";
import { createDataFolder, removeDataFolder, topic } from "../lib/servers.mjs";

const subscribers = 200;
/** Publishes that the publisher may be ahead of the readers. Mosquitto drops an event for a reader that already has 1,000 waiting. */
const window = 200;

/** Compares tails with MQTT over Mosquitto's WebSocket: one publisher (QoS 0, TCP), and many readers over a transport that browsers have. */
export const tail = {
  name: "tail",
  async measure(context) {
    const file = findProgram("mosquitto", "BENCH_MOSQUITTO");
    if (file === undefined) context.leaveOut("tail: mosquitto is neither on the PATH nor named by BENCH_MOSQUITTO");
    const folders = [createDataFolder(context.resultsDir), createDataFolder(context.resultsDir)];
    const servers = [];
    try {
      servers.push(await startMqttBroker({ main: context.main, dataDir: folders[0] }));
      if (file !== undefined) servers.push(await startMosquittoWeb({ file, dataDir: folders[1] }));
      const [broker, mosquitto] = servers;
      const plan = { kind: "fan-out", qos: 0, subscribers, window, contentBytes: 256, topic, ...context.durations };
      return await measureComparison(context, {
        title: `tail, 1 publisher to ${subscribers} connections`,
        peerName: "Mosquitto's WebSocket",
        shareMin: 1,
        runs: {
          broker: () => mqttLoad(broker, { ...plan, readers: { kind: "tail", port: broker.httpPort } }),
          peer:
            mosquitto &&
            (() => mqttLoad(mosquitto, { ...plan, readers: { kind: "websocket", port: mosquitto.webPort } })),
        },
      });
    } finally {
      for (const server of servers) await server.stop();
      folders.forEach(removeDataFolder);
    }
  },
};
