// The load generator for MQTT, run as a separate process: node mqtt-load.mjs '<Plan as JSON>'; prints its findings as JSON.
import { percentile } from "../lib/statistics.mjs";
import { connectAll } from "./mqtt-connections.mjs";
import { MqttClient, PublishPackets } from "./mqtt-client.mjs";
import { TailReader } from "./tail-reader.mjs";
import { WebSocketConnection } from "./web-socket.mjs";

/**
 * @typedef {object} Plan
 * @property {"ingest" | "fan-out" | "round-trip"} kind
 * @property {number} port
 * @property {string} topic
 * @property {number} contentBytes
 * @property {0 | 1} qos of publishes and subscriptions
 * @property {number} window for `ingest`, publishes in flight for each publisher; for `fan-out`, publishes ahead of the subscribers
 * @property {number} [publishers] of `ingest`
 * @property {boolean} [hasTopicEach] whether each publisher has its own topic, `topic`/number
 * @property {number} [subscribers] of `fan-out`
 * @property {{ readonly kind: "tail" | "websocket", readonly port: number }} [readers] how the subscribers of `fan-out` connect; MQTT over TCP by default
 * @property {number} warmUpMs not counted
 * @property {number} measureMs
 */

/** Counts events, and their latencies, between the warm-up and the end. */
class Meter {
  #plan;
  #startedAt = 0;
  #cpuBefore;
  #isCounting = false;
  #events = 0;
  #latencies = [];
  /** Includes the events of the warm-up. */
  eventsTotal = 0;
  isOver = false;

  constructor(plan) {
    this.#plan = plan;
  }

  count(events) {
    this.eventsTotal += events;
    if (this.#isCounting) this.#events += events;
  }

  time(latencyMs) {
    if (this.#isCounting) this.#latencies.push(latencyMs);
  }

  /** Waits for the warm-up and the measured time, and returns the findings. */
  async run() {
    const { warmUpMs, measureMs } = this.#plan;
    await pause(warmUpMs);
    this.#startedAt = performance.now();
    this.#cpuBefore = process.cpuUsage();
    this.#isCounting = true;
    await pause(measureMs);
    const elapsedMs = performance.now() - this.#startedAt;
    const { user, system } = process.cpuUsage(this.#cpuBefore);
    this.isOver = true;
    const sorted = this.#latencies.toSorted((left, right) => left - right);
    return {
      eventsPerSecond: (this.#events * 1000) / elapsedMs,
      p50Ms: percentile(sorted, 0.5),
      p99Ms: percentile(sorted, 0.99),
      clientCpuShare: (user + system) / 1000 / elapsedMs,
      eventsTotal: this.eventsTotal,
    };
  }
}

/** Each publisher sends one event for each acknowledged event, so that `window` events are in flight. */
async function ingest(plan, meter) {
  const { publishers, window, topic, hasTopicEach = false } = plan;
  const clients = await connectAll(publishers, plan.port);
  for (const [index, client] of clients.entries()) {
    const packets = new PublishPackets({ ...plan, topic: hasTopicEach ? `${topic}/${index}` : topic });
    const sentAt = new Map();
    const send = (count) => {
      const now = performance.now();
      const first = packets.nextIdentifier;
      const bytes = packets.next(count);
      for (let more = 0; more < count; more += 1) sentAt.set(((first - 1 + more) % 65_535) + 1, now);
      client.write(bytes);
    };
    client.onAcknowledged = (identifiers) => {
      const now = performance.now();
      for (const identifier of identifiers) {
        const since = sentAt.get(identifier);
        if (since === undefined) throw new Error(`PUBACK for ${identifier}, which is not in flight`);
        sentAt.delete(identifier);
        meter.time(now - since);
      }
      meter.count(identifiers.length);
      if (!meter.isOver) send(identifiers.length);
    };
    send(window);
  }
  return clients;
}

async function openSubscribers({ subscribers: count, readers, port, topic, qos }) {
  if (readers?.kind === "tail") {
    return Promise.all(Array.from({ length: count }, () => new TailReader().open({ ...readers, topic })));
  }
  const subscribers = readers === undefined ? await connectAll(count, port) : await connectOverWeb(count, readers);
  for (const subscriber of subscribers) await subscriber.subscribe(topic, qos);
  return subscribers;
}

function connectOverWeb(count, readers) {
  const open = async (index) => {
    const client = new MqttClient();
    await client.open({ clientId: `web-${index}`, socket: new WebSocketConnection(readers) });
    return client;
  };
  return Promise.all(Array.from({ length: count }, (_, index) => open(index)));
}

/** The publisher stays at most `window` publishes ahead of the subscribers, so that no server has to drop events. */
async function fanOut(plan, meter) {
  const { subscribers: count, window, qos } = plan;
  const subscribers = await openSubscribers(plan);
  const [publisher] = await connectAll(1, plan.port, "publisher");
  const packets = new PublishPackets(plan);
  let published = 0;
  let acknowledged = 0;
  let delivered = 0;
  const sendMore = () => {
    const done = Math.min(Math.floor(delivered / count), qos === 0 ? published : acknowledged);
    const more = window - (published - done);
    if (more < window / 4 || meter.isOver) return; // sends several events in one write
    published += more;
    publisher.write(packets.next(more));
  };
  for (const subscriber of subscribers) {
    subscriber.onDeliveries = (deliveries) => {
      delivered += deliveries;
      meter.count(deliveries);
      sendMore();
    };
  }
  publisher.onAcknowledged = ({ length }) => {
    acknowledged += length;
    sendMore();
  };
  sendMore();
  return [publisher, ...subscribers];
}

/** Times one event at a time, from the publish to the delivery. */
async function roundTrip(plan, meter) {
  const { topic, qos } = plan;
  const [subscriber] = await connectAll(1, plan.port, "subscriber");
  await subscriber.subscribe(topic, qos);
  const [publisher] = await connectAll(1, plan.port, "publisher");
  const packets = new PublishPackets(plan);
  let sentAt = 0;
  const send = () => {
    sentAt = performance.now();
    publisher.write(packets.next(1));
  };
  subscriber.onDeliveries = () => {
    meter.time(performance.now() - sentAt);
    meter.count(1);
    if (!meter.isOver) send();
  };
  send();
  return [publisher, subscriber];
}

const loads = { ingest, "fan-out": fanOut, "round-trip": roundTrip };

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

const plan = JSON.parse(process.argv[2]);
const meter = new Meter(plan);
const clients = await loads[plan.kind](plan, meter);
for (const client of clients) {
  client.onFailed = () => {
    process.stderr.write("The server closed a connection.\n");
    process.exit(1);
  };
}
const findings = await meter.run();
for (const client of clients) client.end();
process.stdout.write(JSON.stringify(findings));
