import { cpus } from "node:os";
import { setTimeout as wait } from "node:timers/promises";
import { ClusterStack } from "../../lib/cluster-stack.mjs";
import { toFigure } from "../../lib/figure.mjs";
import { callRest } from "../../lib/rest.mjs";
import { topic } from "../../lib/servers.mjs";
import { contentOf } from "../../load/request.mjs";

const subscriptions = 60;
/** Published events that a subscription has not received yet, on average: enough to keep every subscription busy. */
const outstandingMax = 500;
const chunkEvents = 50;
const drainTimeoutMs = 60_000;
const pollMs = 20;
const sampleMs = 1000;

/** Measures how fast `nodes` nodes notify the subscriptions to one topic, and the share of the processors that each kind of process uses. */
export async function measureCallbacks(context, nodes) {
  const stack = await ClusterStack.start(context, nodes);
  try {
    for (let index = 0; index < subscriptions; index += 1) {
      const url = `http://127.0.0.1:${stack.receiverPort}/${index}`;
      await callRest(stack.portOf(index), "subscribe", { topic, url });
    }
    return await new Flood(stack).measure(context, nodes);
  } finally {
    await stack.stop();
  }
}

/** Publishes as fast as the notifications go out. */
class Flood {
  #stack;
  #published = 0;
  #samples = [];

  constructor(stack) {
    this.#stack = stack;
  }

  async measure({ callbackSeconds, warmUpSeconds }, nodes) {
    const beginAt = performance.now() + warmUpSeconds * 1000;
    const endAt = beginAt + callbackSeconds * 1000;
    let cpuBefore;
    while (performance.now() < endAt) {
      if (cpuBefore === undefined && performance.now() >= beginAt) cpuBefore = this.#begin();
      if (this.#published - (await this.#look()) / subscriptions < outstandingMax) await this.#publishChunk();
      else await wait(pollMs);
    }
    const cpuAfter = this.#stack.readCpu();
    const seconds = (performance.now() - beginAt) / 1000;
    await this.#drain();
    return toFigures(nodes, { samples: this.#samples, shares: toShares(cpuBefore, cpuAfter, seconds) });
  }

  #begin() {
    this.#samples = [];
    return this.#stack.readCpu();
  }

  async #look() {
    const { received } = await this.#stack.receiver.ask("state");
    const at = performance.now();
    if (at - (this.#samples.at(-1)?.at ?? 0) >= sampleMs) this.#samples.push({ at, received });
    return received;
  }

  async #publishChunk() {
    const publish = (_, index) => callRest(this.#stack.portOf(index), "publish", { topic, content: contentOf(index) });
    await Promise.all(Array.from({ length: chunkEvents }, publish));
    this.#published += chunkEvents;
  }

  /** Waits until all notifications have arrived. Throws if one is missing, repeated or out of order. */
  async #drain() {
    const wanted = this.#published * subscriptions;
    const endAt = performance.now() + drainTimeoutMs;
    for (;;) {
      const { received, repeats, disorders } = await this.#stack.receiver.ask("state");
      if (disorders > 0) throw new Error(`${disorders} notifications came out of order`);
      if (received === wanted && repeats === 0) return;
      if (performance.now() > endAt) throw new Error(`${received} of ${wanted} notifications came, ${repeats} again`);
      await wait(pollMs);
    }
  }
}

function toShares(before, after, seconds) {
  return Object.keys(before).map((name) => [name, (100 * (after[name] - before[name])) / seconds / cpus().length]);
}

function toFigures(nodes, { samples, shares }) {
  const name = (what) => `cluster, ${nodes} ${nodes === 1 ? "node" : "nodes"}, ${subscriptions} subscriptions: ${what}`;
  const rates = samples.slice(1).map((sample, index) => {
    const before = samples[index];
    return ((sample.received - before.received) * 1000) / (sample.at - before.at);
  });
  return [
    { name: name("callbacks"), unit: "notifications/s", values: rates },
    ...shares.map(([what, share]) => ({ name: name(`processors used by ${what}`), unit: "%", values: [share] })),
  ].map(toFigure);
}
