import { toFigure } from "./figure.mjs";

/**
 * One load at the broker and at a peer.
 * @typedef {object} Comparison
 * @property {string} title of the load
 * @property {string} peerName
 * @property {string} [rate] unit of what the target is for
 * @property {string} [each] what the processor time is divided by
 * @property {number} [shareMin] target for the broker's rate, as a share of the peer's
 * @property {{ readonly broker: () => Promise<Findings>, readonly peer?: (() => Promise<Findings>) | undefined }} runs without `peer` where that is not installed
 */

/** @typedef {{ readonly eventsPerSecond: number, readonly p50Ms: number, readonly p99Ms: number, readonly serverCpuUsPerEvent: number }} Findings */

/** Runs both in turn, round by round. @param {{ readonly rounds: number }} context @param {Comparison} comparison */
export async function measureBeside({ rounds: count }, comparison) {
  const rounds = [];
  for (let round = 0; round <= count; round += 1) rounds.push(await measureRound(comparison.runs, round));
  // The first one is for the compiler.
  return toFigures(rounds.slice(1), comparison);
}

/** The one that goes first changes, because the machine may be busier in the second half of a round. */
async function measureRound(runs, round) {
  const names = Object.keys(runs).filter((name) => runs[name] !== undefined);
  const order = round % 2 === 0 ? names : names.toReversed();
  const found = {};
  for (const name of order) found[name] = await runs[name]();
  return found;
}

function toFigures(rounds, { title, peerName, rate = "events/s", each = "event", shareMin }) {
  const of = (who, key) => rounds.map((round) => round[who][key]);
  const rows = [
    { what: "rate", unit: rate, key: "eventsPerSecond" },
    { what: "median", unit: "ms", key: "p50Ms" },
    { what: "p99", unit: "ms", key: "p99Ms" },
    { what: "processor time", unit: `µs/${each}`, key: "serverCpuUsPerEvent" },
  ];
  const hasPeer = rounds.every(({ peer }) => peer !== undefined);
  // A load that times no single event has no latencies.
  const found = rows.filter(({ key }) => rounds.every(({ broker }) => broker[key] !== null));
  const figures = found.flatMap(({ what, unit, key }) => [
    { name: `${title}: ${what}`, unit, values: of("broker", key) },
    ...(hasPeer ? [{ name: `${title}: ${what} of ${peerName}`, unit, values: of("peer", key) }] : []),
  ]);
  if (hasPeer) {
    const values = rounds.map(({ broker, peer }) => broker.eventsPerSecond / peer.eventsPerSecond);
    figures.push({ name: `${title}: rate as a share of ${peerName}'s`, unit: "", values, atLeast: shareMin });
  }
  return figures.map(toFigure);
}
