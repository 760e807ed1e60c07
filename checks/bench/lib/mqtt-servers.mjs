import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Child } from "./child.mjs";
import { findFreePorts } from "./free-ports.mjs";
import { findNatsServer } from "./nats.mjs";
import { findProgram } from "./programs.mjs";
import { Server, startBroker } from "./servers.mjs";

const aedesScript = fileURLToPath(new URL("../aedes-server.mjs", import.meta.url));

/**
 * The servers to compare: for each name, a function that starts the server on a data folder. Leaves out servers that are not installed.
 * @param {import("../run-figures.mjs").Context} context
 * @returns {Record<string, (dataDir: string) => Promise<Server>>}
 */
export function findMqttServers({ main, leaveOut }) {
  const servers = { broker: (dataDir) => startMqttBroker({ main, dataDir }) };
  const mosquitto = findProgram("mosquitto", "BENCH_MOSQUITTO");
  if (mosquitto === undefined) leaveOut("mqtt: mosquitto is neither on the PATH nor named by BENCH_MOSQUITTO");
  else servers.Mosquitto = (dataDir) => startMosquitto({ file: mosquitto, dataDir });
  const aedes = process.env.BENCH_AEDES;
  if (!aedes || !existsSync(join(aedes, "node_modules", "aedes"))) {
    leaveOut("mqtt: BENCH_AEDES names no folder in which `npm install aedes` ran");
  } else servers.aedes = () => startAedes(aedes);
  const nats = findNatsServer();
  if (nats === undefined) leaveOut("mqtt: nats-server is neither on the PATH nor named by BENCH_NATS_SERVER");
  else servers.NATS = (dataDir) => startNatsMqtt({ file: nats, dataDir });
  return servers;
}

/** Starts the broker. The result has its HTTP port in `httpPort` and its MQTT port in `port`. */
export async function startMqttBroker({ main, dataDir }) {
  const [mqttPort] = await findFreePorts(1);
  const server = await startBroker({ main, dataDir, settings: { STELE_MQTT_PORT: String(mqttPort) } });
  server.httpPort = server.port;
  server.port = mqttPort;
  return server;
}

/** Starts Mosquitto without persistence, so that it keeps everything in memory. */
async function startMosquitto({ file, dataDir, more = [] }) {
  const [port] = await findFreePorts(1);
  const config = join(dataDir, "mosquitto.conf");
  const settings = [
    `listener ${port} 127.0.0.1`,
    "allow_anonymous true",
    "persistence false",
    "set_tcp_nodelay true",
    ...more,
  ];
  writeFileSync(config, `${settings.join("\n")}\n`);
  const child = new Child(["-c", config], { command: file });
  await child.waitFor(/mosquitto version \S+ running/);
  return new Server(child, port);
}

/** Starts Mosquitto, with MQTT over WebSockets at `webPort` too. */
export async function startMosquittoWeb({ file, dataDir }) {
  const [webPort] = await findFreePorts(1);
  const server = await startMosquitto({
    file,
    dataDir,
    more: [`listener ${webPort} 127.0.0.1`, "protocol websockets"],
  });
  server.webPort = webPort;
  return server;
}

async function startAedes(folder) {
  const child = new Child([aedesScript, folder]);
  const [, port] = await child.waitFor(/listening on (\d+)/);
  return new Server(child, Number(port));
}

/** Starts NATS with JetStream, which keeps messages of QoS 1 and syncs them to the disk before each acknowledgement. */
async function startNatsMqtt({ file, dataDir }) {
  const config = join(dataDir, "nats.conf");
  const lines = [
    "server_name: bench",
    'listen: "127.0.0.1:-1"',
    `jetstream { store_dir: ${JSON.stringify(join(dataDir, "jetstream"))}, sync_interval: always }`,
    'mqtt { listen: "127.0.0.1:-1" }',
  ];
  writeFileSync(config, `${lines.join("\n")}\n`);
  const child = new Child(["-c", config], { command: file });
  const [, port] = await child.waitFor(/Listening for MQTT clients on \S+127\.0\.0\.1:(\d+)/);
  await child.waitFor(/Server is ready/);
  return new Server(child, Number(port));
}
