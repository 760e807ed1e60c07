import { setTimeout as wait } from "node:timers/promises";
import { Anvil } from "../lib/anvil.mjs";
import { chainSettings } from "../lib/chain-group.mjs";
import { toFigure } from "../lib/figure.mjs";
import { publishLoad } from "../lib/load.mjs";
import { callRest } from "../lib/rest.mjs";
import { createDataFolder, removeDataFolder, startBroker, topic } from "../lib/servers.mjs";

const eventsPerSecondMin = 10_000;
const fillLoad = { connections: 64, eventsPerRequest: 100, warmUpMs: 0, measureMs: 0 };
/** A gas limit so high that publishing never waits for room in a block. */
const flags = ["--block-time", "1", "--gas-limit", "1000000000"];
const pollMs = 20;

/** How fast a broker with an empty store reads the events that another broker has published to a chain. */
export const chainCatchUp = {
  name: "chain-catch-up",
  async measure(context) {
    const anvil = await Anvil.start(flags);
    try {
      const events = await fill(context, anvil);
      const runs = [];
      for (let round = 0; round < context.chainRounds; round += 1) runs.push(await catchUp(context, { anvil, events }));
      const name = (what) => `catch-up, ${events.toLocaleString("en")} events: ${what}`;
      return [
        { name: name("rate"), unit: "events/s", values: runs.map(({ rate }) => rate), atLeast: eventsPerSecondMin },
        { name: name("processor time of the broker"), unit: "µs/event", values: runs.map(({ cpuUs }) => cpuUs) },
        { name: name("processor time of the node"), unit: "µs/event", values: runs.map(({ nodeCpuUs }) => nodeCpuUs) },
        { name: name("peak memory"), unit: "MiB", values: runs.map(({ peakMb }) => peakMb) },
      ].map(toFigure);
    } finally {
      await anvil.stop();
    }
  },
};

/** Publishes at least `chainEvents` events; returns how many. */
async function fill(context, anvil) {
  return withBroker(context, anvil, async (broker) => {
    const { eventsTotal } = await publishLoad(broker, { ...fillLoad, events: context.chainEvents });
    return eventsTotal;
  });
}

/** Measures from the start of the broker's process until it has the last event. */
async function catchUp(context, { anvil, events }) {
  const startedAt = performance.now();
  const nodeCpuBefore = anvil.cpuSeconds;
  return withBroker(context, anvil, async (broker) => {
    for (;;) {
      const { sequenceNumber } = await callRest(broker.port, "state", { topic });
      if (sequenceNumber > events) throw new Error(`${sequenceNumber} events of ${events}`);
      if (sequenceNumber === events) break;
      await wait(pollMs);
    }
    const seconds = (performance.now() - startedAt) / 1000;
    const perEvent = (cpuSeconds) => (cpuSeconds * 1e6) / events;
    return {
      rate: events / seconds,
      cpuUs: perEvent(broker.cpuSeconds),
      nodeCpuUs: perEvent(anvil.cpuSeconds - nodeCpuBefore),
      peakMb: broker.memory.peakMb,
    };
  });
}

async function withBroker(context, anvil, use) {
  const dataDir = createDataFolder(context.resultsDir);
  try {
    const broker = await startBroker({ main: context.main, dataDir, settings: chainSettings(anvil) });
    try {
      return await use(broker);
    } finally {
      await broker.stop();
    }
  } finally {
    removeDataFolder(dataDir);
  }
}
