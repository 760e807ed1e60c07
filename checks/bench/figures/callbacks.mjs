import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Child } from "../lib/child.mjs";
import { toFigure } from "../lib/figure.mjs";
import { callRest } from "../lib/rest.mjs";
import { createDataFolder, removeDataFolder, startBroker, topic } from "../lib/servers.mjs";
import { slope } from "../lib/statistics.mjs";
import { contentOf } from "../load/request.mjs";

const subscriptions = 50;
const notificationsPerSecondMin = 1500;
const residentMbMax = 400;
/** Published events that a subscription has not received yet, on average: enough to keep every subscription busy. */
const outstandingMax = 500;
const chunkEvents = 50;
const drainTimeoutMs = 60_000;
const pollMs = 20;
const receiverScript = fileURLToPath(new URL("../callback-receiver.mjs", import.meta.url));

/** 50 subscriptions to one topic, notified as fast as their receiver answers. */
export const callbacks = {
  name: "callbacks",
  async measure(context) {
    const dataDir = createDataFolder(context.resultsDir);
    const receiver = new Child([receiverScript], { ipc: true });
    try {
      const [, port] = await receiver.waitFor(/listening on (\d+)/);
      const broker = await startBroker({ main: context.main, dataDir });
      try {
        for (let index = 0; index < subscriptions; index += 1) {
          await callRest(broker.port, "subscribe", { topic, url: `http://127.0.0.1:${port}/${index}` });
        }
        return await new Flood(broker, receiver).measure(context);
      } finally {
        await broker.stop();
      }
    } finally {
      await receiver.stop();
      removeDataFolder(dataDir);
    }
  },
};

/** Publishes as fast as the notifications go out, and samples the rate and the memory once a second. */
class Flood {
  #broker;
  #receiver;
  #published = 0;
  #samples = [];

  constructor(broker, receiver) {
    this.#broker = broker;
    this.#receiver = receiver;
  }

  async measure({ callbackSeconds, warmUpSeconds }) {
    const endAt = performance.now() + (warmUpSeconds + callbackSeconds) * 1000;
    while (performance.now() < endAt) {
      const { received } = await this.#look();
      if (this.#published - received / subscriptions < outstandingMax) await this.#publishChunk();
      else await wait(pollMs);
    }
    await this.#drain();
    return this.#toFigures(warmUpSeconds);
  }

  async #look() {
    const state = await this.#receiver.ask("state");
    const at = performance.now();
    if (at - (this.#samples.at(-1)?.at ?? 0) >= 1000) {
      this.#samples.push({ at, received: state.received, residentMb: this.#broker.memory.residentMb });
    }
    return state;
  }

  async #publishChunk() {
    const publish = (_, index) => callRest(this.#broker.port, "publish", { topic, content: contentOf(index) });
    await Promise.all(Array.from({ length: chunkEvents }, publish));
    this.#published += chunkEvents;
  }

  /** Waits until all notifications have arrived. Throws if one is missing, repeated or out of order. */
  async #drain() {
    const wanted = this.#published * subscriptions;
    const endAt = performance.now() + drainTimeoutMs;
    for (;;) {
      const { received, repeats, disorders } = await this.#receiver.ask("state");
      if (disorders > 0) throw new Error(`${disorders} notifications came out of order`);
      if (received === wanted && repeats === 0) return;
      if (performance.now() > endAt) throw new Error(`${received} of ${wanted} notifications came, ${repeats} again`);
      await wait(pollMs);
    }
  }

  #toFigures(warmUpSeconds) {
    const samples = this.#samples.filter(({ at }) => at >= this.#samples[0].at + warmUpSeconds * 1000);
    const rates = samples.slice(1).map((sample, index) => {
      const before = samples[index];
      return ((sample.received - before.received) * 1000) / (sample.at - before.at);
    });
    // Memory also grows in the first half, while caches fill up to their limits (docs/limits.md).
    const settled = samples.slice(Math.floor(samples.length / 2));
    const mbPerMinute = slope(settled.map(({ at, residentMb }) => ({ x: at / 60_000, y: residentMb })));
    return [
      { name: nameOf("rate"), unit: "notifications/s", values: rates, atLeast: notificationsPerSecondMin },
      { name: nameOf("growth of memory"), unit: "MiB/minute", values: [mbPerMinute] },
      { name: nameOf("peak memory"), unit: "MiB", values: [this.#broker.memory.peakMb], below: residentMbMax },
    ].map(toFigure);
  }
}

function nameOf(what) {
  return `callbacks, ${subscriptions} subscriptions: ${what}`;
}
