import { access } from "./figures/access.mjs";
import { admin } from "./figures/admin.mjs";
import { batches } from "./figures/batches.mjs";
import { callbacks } from "./figures/callbacks.mjs";
import { chainCatchUp } from "./figures/chain-catch-up.mjs";
import { chainPublish } from "./figures/chain-publish.mjs";
import { cluster } from "./figures/cluster.mjs";
import { fasterReceivers } from "./figures/faster-receivers.mjs";
import { gas } from "./figures/gas.mjs";
import { mqtt } from "./figures/mqtt.mjs";
import { nats } from "./figures/nats.mjs";
import { replay } from "./figures/replay.mjs";
import { revocation } from "./figures/revocation.mjs";
import { publish256, publish64, publishOne } from "./figures/publish.mjs";
import { starts } from "./figures/starts.mjs";
import { stomp } from "./figures/stomp.mjs";
import { stored } from "./figures/stored.mjs";
import { tail } from "./figures/tail.mjs";
import { topics } from "./figures/topics.mjs";

/**
 * Options of a measurement.
 * @typedef {object} Context
 * @property {string} main the broker's entry
 * @property {string} resultsDir folder for the data folders
 * @property {number} rounds measured runs of each load
 * @property {{ readonly warmUpMs: number, readonly measureMs: number }} durations of one run
 * @property {number} callbackSeconds for which callbacks are counted
 * @property {number} warmUpSeconds before callbacks are counted, and before publishes are measured
 * @property {number} fillEvents in the store of the measurement `stored`
 * @property {number} chainRounds measured runs on an external chain
 * @property {{ readonly warmUpMs: number, readonly measureMs: number }} chainDurations of one run on an external chain
 * @property {number} chainEvents to catch up with on an external chain
 * @property {number} kills of a node
 * @property {number} subscriptions that several nodes share
 * @property {number} subscriptionsBehind at a start: each has events to deliver
 * @property {readonly number[]} topicCounts numbers of topics to compare with the first number
 * @property {number} topicRunEvents published in one run of `topics`
 * @property {number} topicEvents in the store when `topics` measures a start
 * @property {number} mqttIdleConnections whose memory is measured
 * @property {(what: string) => void} leaveOut reports what this machine cannot measure, and why
 */

const measurements = [
  publish256,
  publish64,
  publishOne,
  batches,
  topics,
  access,
  revocation,
  nats,
  stomp,
  mqtt,
  tail,
  callbacks,
  fasterReceivers,
  replay,
  admin,
  stored,
  starts,
  chainPublish,
  chainCatchUp,
  gas,
  cluster,
];

export const measurementNames = measurements.map(({ name }) => name);

const thorough = {
  rounds: 5,
  durations: { warmUpMs: 1000, measureMs: 5000 },
  callbackSeconds: 60,
  warmUpSeconds: 10,
  fillEvents: 1_000_000,
  chainRounds: 5,
  chainDurations: { warmUpMs: 3000, measureMs: 20_000 },
  chainEvents: 200_000,
  kills: 10,
  subscriptions: 10_000,
  subscriptionsBehind: 20_000,
  topicCounts: [1, 10, 100, 1000, 5000, 20_000],
  topicRunEvents: 40_000,
  topicEvents: 1_000_000,
  mqttIdleConnections: 5000,
};
const quick = {
  rounds: 3,
  durations: { warmUpMs: 500, measureMs: 2000 },
  callbackSeconds: 10,
  warmUpSeconds: 10,
  fillEvents: 50_000,
  chainRounds: 2,
  chainDurations: { warmUpMs: 2000, measureMs: 8000 },
  chainEvents: 50_000,
  kills: 3,
  subscriptions: 10_000,
  subscriptionsBehind: 5_000,
  topicCounts: [1, 100, 1000, 2000],
  topicRunEvents: 12_000,
  topicEvents: 100_000,
  mqttIdleConnections: 5000, // with fewer, most of the measured growth would have other causes than the connections
};

/**
 * Runs one measurement after another. Reports a failed one and continues with the next.
 * @param {{ readonly main: string, readonly resultsDir: string, readonly isQuick: boolean, readonly only?: string, readonly fillEvents?: number, readonly callbackSeconds?: number }} options
 * @returns {Promise<{ readonly figures: readonly import("./lib/figure.mjs").Figure[], readonly failed: readonly string[], readonly leftOut: readonly string[] }>}
 */
export async function runFigures({ main, resultsDir, isQuick, only, ...given }) {
  const scale = isQuick ? quick : thorough;
  const fillEvents = given.fillEvents ?? scale.fillEvents;
  const callbackSeconds = given.callbackSeconds ?? scale.callbackSeconds;
  const figures = [];
  const failed = [];
  const leftOut = [];
  const leaveOut = (what) => leftOut.push(what);
  const context = { ...scale, main, resultsDir, fillEvents, callbackSeconds, leaveOut };
  for (const measurement of measurements) {
    if (only !== undefined && measurement.name !== only) continue;
    process.stderr.write(`— ${measurement.name}\n`);
    try {
      figures.push(...(await measurement.measure(context)));
    } catch (error) {
      failed.push(measurement.name);
      process.stderr.write(`${error.stack}\n`);
    }
  }
  return { figures, failed, leftOut };
}
