import { execFile } from "node:child_process";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { topicRegistryAbi } from "@stele/contracts";
import { getAbiItem, toEventSelector } from "viem";
import { Anvil, devKeys } from "../lib/anvil.mjs";
import { logsOf, waitUntilIdle, watchBlocks } from "../lib/block-watch.mjs";
import { chainSettings } from "../lib/chain-group.mjs";
import { toFigure } from "../lib/figure.mjs";
import { publishLoad } from "../lib/load.mjs";
import { callRest } from "../lib/rest.mjs";
import { createDataFolder, removeDataFolder, startBroker, topic } from "../lib/servers.mjs";

const run = promisify(execFile);
const script = fileURLToPath(new URL("../load/one-by-one.mjs", import.meta.url));
const connections = 64;
/** Many small transactions fill a block better than few large ones. Polls are frequent: if the broker sees a new block late, the next one is empty. */
const group = { transactionsInFlightMax: 64, pollMs: 100 };
/**
 * With the node's default gas limit, gas is the bottleneck. With a gas limit that is never reached, the processors are. Both sides have more than two
 * blocks of events outstanding: the broker has one JSON-RPC batch of `eventsPerRequest` on each connection, the script has `outstandingMax` transactions.
 */
const cases = [
  {
    title: "blocks of 30M gas",
    flags: [],
    settings: { STELE_CONTENT_BYTES_MAX: "4096" },
    group: { ...group, transactionBytesMax: 16_384 },
    eventsPerRequest: 100,
    outstandingMax: 5000,
    gainMin: 5,
    gasShareMin: 0.95,
  },
  {
    title: "blocks of 1G gas",
    flags: ["--gas-limit", "1000000000"],
    settings: { STELE_PUBLISHES_WAITING_MAX: "40000" },
    group,
    eventsPerRequest: 300,
    outstandingMax: 20_000,
  },
];
/** First topic of the registry's log of a batch. The log's data begins with the events' root and count, a word each. */
const eventsPublished = toEventSelector(getAbiItem({ abi: topicRegistryAbi, name: "EventsPublished" }));
const hexDigitsPerWord = 64;
/** A contract that only emits its calldata as a log without topics: no contract can record an event with less gas. */
const loggerCode = "0x600b8060093d393df3366000600037366000a000";
const deployGas = "0x30d40";
const loggerKeyIndex = 1;
const pollMs = 50;

/** Publishing on a chain with a block a second, compared with a script that sends one transaction per event to the same node. */
export const chainPublish = {
  name: "chain-publish",
  async measure(context) {
    const figures = [];
    for (const one of cases) figures.push(...(await measureOn(context, one)));
    return figures;
  },
};

async function measureOn(context, one) {
  const dataDir = createDataFolder(context.resultsDir);
  const anvil = await Anvil.start(["--block-time", "1", ...one.flags]);
  try {
    const logger = await deployLogger(anvil);
    const settings = { ...chainSettings(anvil, one), ...one.settings };
    const broker = await startBroker({ main: context.main, dataDir, settings });
    try {
      const runs = {
        script: () => runScript(anvil, { logger, ...one, ...context.chainDurations }),
        broker: () => runBroker(anvil, { broker, ...one, ...context.chainDurations }),
      };
      const rounds = [];
      for (let round = 0; round < context.chainRounds; round += 1) rounds.push(await measureRound(runs, round));
      return toFigures(rounds, { ...one, peakMb: broker.memory.peakMb });
    } finally {
      await broker.stop();
    }
  } finally {
    await anvil.stop();
    removeDataFolder(dataDir);
  }
}

/** Alternates which of the two goes first, because the machine may be busier in the second half of a round. */
async function measureRound(runs, round) {
  const order = round % 2 === 0 ? ["script", "broker"] : ["broker", "script"];
  const found = {};
  for (const name of order) found[name] = await runs[name]();
  return found;
}

async function runScript(anvil, { logger, outstandingMax, warmUpMs, measureMs }) {
  const sendMs = warmUpMs + measureMs + 2000;
  const plan = {
    url: anvil.url,
    privateKey: devKeys[loggerKeyIndex],
    contract: logger,
    connections,
    outstandingMax,
    sendMs,
  };
  const cpuBefore = anvil.cpuSeconds;
  const [watched, { stdout }] = await Promise.all([
    watchBlocks(anvil, { warmUpMs, measureMs }),
    run(process.execPath, [script, JSON.stringify(plan)]),
  ]);
  await waitUntilIdle(anvil);
  const { sent, clientCpuShare } = JSON.parse(stdout);
  const logs = await logsOf(anvil, watched, { address: logger });
  return toResult(watched, logs.length, { clientCpuShare, nodeCpuUs: ((anvil.cpuSeconds - cpuBefore) * 1e6) / sent });
}

async function runBroker(anvil, { broker, eventsPerRequest, warmUpMs, measureMs }) {
  const plan = { connections, eventsPerRequest, warmUpMs, measureMs: measureMs + 2000 };
  const cpuBefore = anvil.cpuSeconds;
  const before = (await callRest(broker.port, "state", { topic })).sequenceNumber;
  const [watched, load] = await Promise.all([watchBlocks(anvil, { warmUpMs, measureMs }), publishLoad(broker, plan)]);
  const after = (await callRest(broker.port, "state", { topic })).sequenceNumber;
  if (after - before !== load.eventsTotal)
    throw new Error(`${load.eventsTotal} answered, ${after - before} on the chain`);
  await waitUntilIdle(anvil);
  const logs = await logsOf(anvil, watched, { topics: [eventsPublished] });
  const events = logs.reduce((sum, { data }) => sum + countIn(data), 0);
  return toResult(watched, events, {
    transactions: logs.length,
    p50Ms: load.p50Ms,
    cpuUs: load.serverCpuUsPerEvent,
    nodeCpuUs: ((anvil.cpuSeconds - cpuBefore) * 1e6) / load.eventsTotal,
  });
}

function countIn(data) {
  const [start, end] = [1, 2].map((word) => 2 + word * hexDigitsPerWord);
  return Number(`0x${data.slice(start, end)}`);
}

function toResult({ seconds, gasShare, from, to }, events, more) {
  return { eventsPerSecond: events / seconds, gasShare, blocks: to - from, ...more };
}

function toFigures(rounds, { title, gainMin, gasShareMin, peakMb }) {
  const name = (what) => `chain, 1 s blocks, ${title}: ${what}`;
  const of = (who, key) => rounds.map((round) => round[who][key]);
  const gains = rounds.map(({ broker, script }) => broker.eventsPerSecond / script.eventsPerSecond);
  return [
    { name: name("rate"), unit: "events/s", values: of("broker", "eventsPerSecond") },
    { name: name("rate of one transaction per event"), unit: "events/s", values: of("script", "eventsPerSecond") },
    { name: name("times one transaction per event"), unit: "×", values: gains, ...bound(gainMin) },
    { name: name("share of the gas"), unit: "", values: of("broker", "gasShare"), ...bound(gasShareMin) },
    { name: name("share of the gas by one transaction per event"), unit: "", values: of("script", "gasShare") },
    { name: name("median"), unit: "ms", values: of("broker", "p50Ms") },
    { name: name("processor time of the broker"), unit: "µs/event", values: of("broker", "cpuUs") },
    { name: name("processor time of the node"), unit: "µs/event", values: of("broker", "nodeCpuUs") },
    {
      name: name("processor time of the node, one transaction per event"),
      unit: "µs/event",
      values: of("script", "nodeCpuUs"),
    },
    { name: name("peak memory"), unit: "MiB", values: [peakMb] },
  ].map(toFigure);
}

function bound(atLeast) {
  return atLeast === undefined ? {} : { atLeast };
}

/** Deploys the contract of the baseline; returns its address. */
async function deployLogger(anvil) {
  const [, from] = await anvil.request("eth_accounts");
  const hash = await anvil.request("eth_sendTransaction", [{ from, data: loggerCode, gas: deployGas }]);
  for (;;) {
    const receipt = await anvil.request("eth_getTransactionReceipt", [hash]);
    if (receipt !== null) return receipt.contractAddress;
    await wait(pollMs);
  }
}
