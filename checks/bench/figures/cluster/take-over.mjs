import { setTimeout as wait } from "node:timers/promises";
import { ClusterStack } from "../../lib/cluster-stack.mjs";
import { toFigure } from "../../lib/figure.mjs";
import { callRest } from "../../lib/rest.mjs";
import { topic } from "../../lib/servers.mjs";
import { waitFor } from "../../lib/wait-for.mjs";

const nodes = 3;
const subscriptions = 30;
const takeOverSecondsMax = 10;
const publishEveryMs = 50;

/** Kills one node after another, with default settings. Measures the time from each kill until every subscription has an event published after the kill. */
export async function measureTakeOver(context) {
  const stack = await ClusterStack.start(context, nodes);
  const load = new SteadyLoad(stack);
  try {
    for (let index = 0; index < subscriptions; index += 1) {
      const url = `http://127.0.0.1:${stack.receiverPort}/${index}`;
      await callRest(stack.portOf(index), "subscribe", { topic, url });
    }
    load.start();
    const deliveries = [];
    const publishes = [];
    for (let kill = 0; kill < context.kills; kill += 1) {
      await waitFor("shares are even", async () => isEven(await stack.countSubscriptions()));
      const found = await measureKill(stack, { load, index: kill % nodes });
      deliveries.push(found.deliverySeconds);
      publishes.push(found.publishSeconds);
      await stack.startNode(kill % nodes);
    }
    return toFigures(context.kills, { deliveries, publishes });
  } finally {
    await load.stop();
    await stack.stop();
  }
}

async function measureKill(stack, { load, index }) {
  const killedAt = performance.now();
  await stack.killNode(index);
  const first = await load.nextAcknowledged();
  const publishSeconds = (performance.now() - killedAt) / 1000;
  await waitFor("all are notified", async () => {
    const { sequences } = await stack.receiver.ask("sequences");
    return sequences.length === subscriptions && sequences.every(([, sequence]) => sequence >= first);
  });
  return { publishSeconds, deliverySeconds: (performance.now() - killedAt) / 1000 };
}

function toFigures(kills, { deliveries, publishes }) {
  const name = (what) => `cluster, ${nodes} nodes, ${kills} kills: ${what}`;
  return [
    { name: name("time until a publish is acknowledged"), unit: "s", values: publishes, below: takeOverSecondsMax },
    { name: name("time until all are notified"), unit: "s", values: deliveries, below: takeOverSecondsMax },
    {
      name: name("time until all are notified, longest"),
      unit: "s",
      values: [Math.max(...deliveries)],
      below: takeOverSecondsMax,
    },
  ].map(toFigure);
}

function isEven(counts) {
  const values = [...counts.values()];
  return values.length === nodes && Math.max(...values) - Math.min(...values) <= 1;
}

/** Publishes one event after another, each to the next node. It ignores failures. */
class SteadyLoad {
  #stack;
  #turn = 0;
  #isStopping = false;
  #running = Promise.resolve();
  #waiting = [];

  constructor(stack) {
    this.#stack = stack;
  }

  start() {
    this.#running = this.#run();
  }

  async stop() {
    this.#isStopping = true;
    await this.#running;
  }

  /** Resolves with the sequence of the first acknowledged event among those sent from now on. */
  nextAcknowledged() {
    return new Promise((resolve) => this.#waiting.push({ since: performance.now(), resolve }));
  }

  async #run() {
    while (!this.#isStopping) {
      const sentAt = performance.now();
      const sent = await this.#publish();
      if (sent !== undefined) this.#report(sentAt, Number(sent.eventId.split("-")[1]));
      await wait(publishEveryMs);
    }
  }

  /** Publishes one event. Undefined if the call fails. */
  async #publish() {
    this.#turn += 1;
    try {
      return await callRest(this.#stack.portOf(this.#turn), "publish", { topic, content: "x" });
    } catch {
      return undefined;
    }
  }

  #report(sentAt, sequence) {
    const due = this.#waiting.filter(({ since }) => sentAt >= since);
    this.#waiting = this.#waiting.filter((waiting) => !due.includes(waiting));
    for (const { resolve } of due) resolve(sequence);
  }
}
