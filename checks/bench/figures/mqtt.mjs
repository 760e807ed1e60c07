import { toFigure } from "../lib/figure.mjs";
import { measureIdle, mqttLoad } from "../lib/mqtt-load.mjs";
import { findMqttServers } from "../lib/mqtt-servers.mjs";
import { createDataFolder, removeDataFolder, topic } from "../lib/servers.mjs";
import { openTopics } from "../lib/topics.mjs";

const peers = ["Mosquitto", "aedes", "NATS"];
const contentSizes = [100, 256];
const topicEachPublishers = 5000;

/** Publishes that the publisher may be ahead of the subscribers. Mosquitto drops events for a subscriber that is 1,000 behind. */
const fanOutWindow = 500;
const ingestOf = (publishers) => ({ kind: "ingest", qos: 1, publishers, window: 20 });
const fanOutOf = (qos) => ({ kind: "fan-out", qos, subscribers: 50, window: fanOutWindow });

/** The loads for every server. `shares` are the broker's targets: at least this share of the other server's rate. */
const loads = [
  { name: "ingest QoS 1, 10 publishers", plan: ingestOf(10), shares: { Mosquitto: 0.15, NATS: 2 } },
  { name: "ingest QoS 1, 100 publishers", plan: ingestOf(100), shares: { Mosquitto: 0.3, NATS: 2 } },
  { name: "fan-out 1 to 50, QoS 0", plan: fanOutOf(0), shares: { Mosquitto: 1 } },
  { name: "fan-out 1 to 50, QoS 1", plan: fanOutOf(1), shares: { Mosquitto: 0.7 } },
];

/** Publishing and subscribing over MQTT, compared with other MQTT servers. Of these, only NATS writes to the disk before it acknowledges, as the broker does. */
export const mqtt = {
  name: "mqtt",
  async measure(context) {
    const folders = [];
    const servers = {};
    try {
      for (const [name, start] of Object.entries(findMqttServers(context))) {
        const folder = createDataFolder(context.resultsDir);
        folders.push(folder);
        servers[name] = await start(folder);
      }
      const figures = await measureIdles(servers, context);
      for (const contentBytes of contentSizes) {
        for (const load of loads) figures.push(...(await measureLoad(load, { servers, contentBytes, context })));
      }
      figures.push(...(await measureTopicEach(servers.broker, context)));
      figures.push(...(await measureRoundTrips(servers, context)));
      return figures.map(toFigure);
    } finally {
      for (const server of Object.values(servers)) await server.stop();
      folders.forEach(removeDataFolder);
    }
  },
};

async function measureIdles(servers, { mqttIdleConnections: count }) {
  const measures = Object.entries(servers).map(async ([server, each]) => {
    const values = [await measureIdle(each, count)];
    const target = server === "broker" ? { below: 20 } : {};
    return { name: `${count} idle connections, ${server}: memory of one`, unit: "KiB", values, ...target };
  });
  return Promise.all(measures);
}

async function measureLoad({ name, plan, shares }, { servers, contentBytes, context }) {
  const whole = { ...plan, contentBytes, topic, ...context.durations };
  const rounds = await measureRounds(servers, context, (server) => mqttLoad(server, whole));
  const title = (what) => `${name}, ${contentBytes} bytes: ${what}`;
  const figures = [];
  for (const server of Object.keys(servers)) {
    const of = (key) => rounds.map((round) => round[server][key]);
    figures.push({ name: title(`${server}, rate`), unit: "events/s", values: of("eventsPerSecond") });
    figures.push({ name: title(`${server}, processor time`), unit: "µs/event", values: of("serverCpuUsPerEvent") });
    figures.push({ name: title(`${server}, share of the load generator`), unit: "", values: of("clientCpuShare") });
  }
  for (const peer of peers.filter((one) => servers[one] !== undefined)) {
    const values = rounds.map((round) => round.broker.eventsPerSecond / round[peer].eventsPerSecond);
    figures.push({ name: title(`times ${peer}`), unit: "×", values, atLeast: shares[peer] });
  }
  return figures;
}

/** The rate of many publishers with a topic each, as a share of their rate on one topic. */
async function measureTopicEach(broker, context) {
  const topics = Array.from({ length: topicEachPublishers }, (_, index) => `${topic}/${index}`);
  await openTopics(broker.httpPort, topics);
  const plan = { kind: "ingest", qos: 1, publishers: topicEachPublishers, window: 1, contentBytes: 100, topic };
  const whole = { ...plan, ...context.durations };
  const rounds = await measureRounds({ one: broker, each: broker }, context, (server, name) =>
    mqttLoad(server, { ...whole, hasTopicEach: name === "each" }),
  );
  const title = (what) => `${topicEachPublishers} publishers, QoS 1: ${what}`;
  const of = (name, key) => rounds.map((round) => round[name][key]);
  const shares = rounds.map(({ one, each }) => each.eventsPerSecond / one.eventsPerSecond);
  return [
    { name: title("one topic, rate"), unit: "events/s", values: of("one", "eventsPerSecond") },
    { name: title("a topic each, rate"), unit: "events/s", values: of("each", "eventsPerSecond") },
    { name: title("a topic each as a share of one topic"), unit: "", values: shares, atLeast: 0.5 },
    { name: title("one topic, processor time"), unit: "µs/event", values: of("one", "serverCpuUsPerEvent") },
    { name: title("a topic each, processor time"), unit: "µs/event", values: of("each", "serverCpuUsPerEvent") },
  ];
}

async function measureRoundTrips(servers, context) {
  const plan = { kind: "round-trip", qos: 1, window: 1, contentBytes: 100, topic, ...context.durations };
  const rounds = await measureRounds(servers, context, (server) => mqttLoad(server, plan));
  return Object.keys(servers).flatMap((server) => {
    const of = (key) => rounds.map((round) => round[server][key]);
    return [
      { name: `round trip QoS 1, ${server}: median`, unit: "ms", values: of("p50Ms") },
      { name: `round trip QoS 1, ${server}: p99`, unit: "ms", values: of("p99Ms") },
    ];
  });
}

/** Reverses the order in every round, because the machine may be busier in the second half. The first round only warms up the JIT compilers. */
async function measureRounds(servers, { rounds }, measure) {
  const found = [];
  for (let round = 0; round <= rounds; round += 1) {
    const names = Object.keys(servers);
    if (round % 2 === 1) names.reverse();
    const one = {};
    for (const name of names) one[name] = await measure(servers[name], name);
    found.push(one);
  }
  return found.slice(1);
}
