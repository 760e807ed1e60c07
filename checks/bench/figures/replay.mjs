import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Child } from "../lib/child.mjs";
import { toFigure } from "../lib/figure.mjs";
import { publishLoad } from "../lib/load.mjs";
import { callRest } from "../lib/rest.mjs";
import { createDataFolder, removeDataFolder, startBroker } from "../lib/servers.mjs";

const events = 100_000;
const topic = "bench/replay";
const connections = 64;
const shareMin = 0.8;
const pollMs = 20;
const fillLoad = { topic, connections: 16, eventsPerRequest: 100, warmUpMs: 0, measureMs: 0, events };
const receiverScript = fileURLToPath(new URL("../callback-receiver.mjs", import.meta.url));

const ways = [
  { name: "one by one", parameters: {} },
  { name: "batches of 100", parameters: { batch: "100" } },
];

/** Rate and latencies of publishes while a subscription replays 100,000 events of another topic, each divided by its value without a replay. */
export const replay = {
  name: "replay",
  async measure(context) {
    const dataDir = createDataFolder(context.resultsDir);
    const receiver = new Child([receiverScript], { ipc: true });
    try {
      const [, port] = await receiver.waitFor(/listening on (\d+)/);
      const broker = await startBroker({ main: context.main, dataDir });
      try {
        await callRest(broker.port, "open", { topic });
        await publishLoad(broker, fillLoad);
        const figures = [];
        for (const way of ways) {
          const replays = await Replays.create({ broker, receiver, url: `http://127.0.0.1:${port}/`, ...way });
          figures.push(...toFigures(way.name, await measureRounds(context, broker, replays)));
        }
        return figures;
      } finally {
        await broker.stop();
      }
    } finally {
      await receiver.stop();
      removeDataFolder(dataDir);
    }
  },
};

/** Replays one subscription again and again. */
class Replays {
  #broker;
  #receiver;
  #subscriptionId;

  constructor({ broker, receiver }, subscriptionId) {
    this.#broker = broker;
    this.#receiver = receiver;
    this.#subscriptionId = subscriptionId;
  }

  /** Subscribes to new events only, so that the subscription gets nothing before the first replay. */
  static async create({ broker, receiver, url, parameters }) {
    const subscriptionId = await callRest(broker.port, "subscribe", { topic, url, ...parameters });
    return new Replays({ broker, receiver }, subscriptionId);
  }

  /** Replays while `load` runs; returns the findings of `load`, and the rate of the replays. Throws if an event is repeated or out of order. */
  async during(load) {
    const over = new AbortController();
    const loading = load().finally(() => over.abort());
    const startedAt = performance.now();
    let received = 0;
    while (!over.signal.aborted) received += await this.#replay(over.signal);
    const replayedPerSecond = (received * 1000) / (performance.now() - startedAt);
    return { ...(await loading), replayedPerSecond };
  }

  /** Replays until the receiver has all events, or until `over` aborts; returns how many events the receiver got. */
  async #replay(over) {
    await this.#receiver.ask("forget");
    await this.#order("replay", { from: "OFFSET_FIRST" });
    let state = await this.#receiver.ask("state");
    while (state.received < events && !over.aborted) {
      await wait(pollMs);
      state = await this.#receiver.ask("state");
    }
    if (state.received < events) await this.#order("skip", { to: "OFFSET_LAST" });
    if (state.repeats + state.disorders > 0)
      throw new Error(`A replay repeats events or is out of order: ${JSON.stringify(state)}`);
    return state.received;
  }

  async #order(name, body) {
    const response = await fetch(
      `http://127.0.0.1:${this.#broker.port}/admin/v1/subscriptions/${this.#subscriptionId}/${name}`,
      { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) },
    );
    if (!response.ok) throw new Error(`${name} failed: ${response.status} ${await response.text()}`);
  }
}

/** Alternates which run goes first, because the machine may be busier in the second half of a round. The first round only warms up the JIT compilers. */
async function measureRounds({ rounds: count, durations }, broker, replays) {
  const load = () => publishLoad(broker, { connections, ...durations });
  const runs = [
    ["alone", load],
    ["beside", () => replays.during(load)],
  ];
  const rounds = [];
  for (let round = 0; round <= count; round += 1) {
    const found = {};
    for (const [name, run] of runs) found[name] = await run();
    rounds.push(found);
    runs.reverse();
  }
  return rounds.slice(1);
}

function toFigures(way, rounds) {
  const head = `publish, ${connections} connections, during a replay (${way})`;
  const share = (key) => rounds.map(({ alone, beside }) => beside[key] / alone[key]);
  return [
    { name: `${head}: rate ÷ rate without it`, unit: "", values: share("eventsPerSecond"), atLeast: shareMin },
    { name: `${head}: median ÷ median without it`, unit: "", values: share("p50Ms") },
    { name: `${head}: p99 ÷ p99 without it`, unit: "", values: share("p99Ms") },
    {
      name: `publish, ${connections} connections, without a replay (alternating with: ${way}): rate`,
      unit: "events/s",
      values: rounds.map(({ alone }) => alone.eventsPerSecond),
    },
    { name: `${head}: replayed`, unit: "events/s", values: rounds.map(({ beside }) => beside.replayedPerSecond) },
  ].map(toFigure);
}
