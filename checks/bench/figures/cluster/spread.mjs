import { ClusterStack } from "../../lib/cluster-stack.mjs";
import { toFigure } from "../../lib/figure.mjs";
import { callRest } from "../../lib/rest.mjs";
import { topic } from "../../lib/servers.mjs";
import { waitFor } from "../../lib/wait-for.mjs";

const nodes = 3;
const callsAtOnce = 32;
/** Shares count as even while each node's number of subscriptions differs by at most this many percent from an even share. */
const unevennessMax = 10;

/** How evenly several nodes share many subscriptions, and how long they take to rebalance after a node dies and after it restarts. */
export async function measureSpread(context) {
  const stack = await ClusterStack.start(context, nodes);
  try {
    const subscribeSeconds = await timeOf(() => subscribeMany(stack, context.subscriptions));
    await settle(stack, { nodes, ...context });
    await stack.killNode(0);
    const afterKill = await settle(stack, { nodes: nodes - 1, ...context });
    const afterStart = await timeOf(async () => {
      await stack.startNode(0);
      await settle(stack, { nodes, ...context });
    });
    const sequence = await publish(stack);
    const notifySeconds = await timeOf(() =>
      waitFor("all are notified", async () => {
        const { sequences } = await stack.receiver.ask("sequences");
        return sequences.length === context.subscriptions && sequences.every(([, last]) => last >= sequence);
      }),
    );
    const unevenness = unevennessOf(await stack.countSubscriptions(), context.subscriptions);
    return toFigures(context.subscriptions, { subscribeSeconds, afterKill, afterStart, notifySeconds, unevenness });
  } finally {
    await stack.stop();
  }
}

async function subscribeMany(stack, count) {
  const indexes = Array.from({ length: count }, (_, index) => index).values();
  const subscribe = async () => {
    for (const index of indexes) {
      const url = `http://127.0.0.1:${stack.receiverPort}/${index}`;
      await callRest(stack.portOf(index), "subscribe", { topic, url });
    }
  };
  await Promise.all(Array.from({ length: callsAtOnce }, subscribe));
}

async function publish(stack) {
  const { eventId } = await callRest(stack.portOf(0), "publish", { topic, content: "x" });
  return Number(eventId.split("-")[1]);
}

/** Waits until `nodes` nodes have even shares of all subscriptions; returns how many seconds that took. */
function settle(stack, { nodes, subscriptions }) {
  return timeOf(() =>
    waitFor(`${nodes} nodes have even shares`, async () => {
      const counts = await stack.countSubscriptions();
      return counts.size === nodes && unevennessOf(counts, subscriptions) <= unevennessMax;
    }),
  );
}

/** The largest difference between a node's number and an even share, in percent of an even share. */
function unevennessOf(counts, subscriptions) {
  const share = subscriptions / counts.size;
  return Math.max(...[...counts.values()].map((count) => (100 * Math.abs(count - share)) / share));
}

async function timeOf(run) {
  const startedAt = performance.now();
  await run();
  return (performance.now() - startedAt) / 1000;
}

function toFigures(subscriptions, { subscribeSeconds, afterKill, afterStart, notifySeconds, unevenness }) {
  const name = (what) => `cluster, ${nodes} nodes, ${subscriptions} subscriptions: ${what}`;
  return [
    { name: name("subscribe"), unit: "calls/s", values: [subscriptions / subscribeSeconds] },
    { name: name("largest difference from an even share"), unit: "%", values: [unevenness], below: unevennessMax },
    { name: name("time from a kill until the shares are even again"), unit: "s", values: [afterKill] },
    { name: name("time from the start of a node until the shares are even again"), unit: "s", values: [afterStart] },
    {
      name: name("time from the answer to a publish until all subscriptions are notified"),
      unit: "s",
      values: [notifySeconds],
    },
  ].map(toFigure);
}
