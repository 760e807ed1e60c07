import { toFigure } from "./figure.mjs";

/**
 * The same load on the broker and on a peer (another product).
 * @typedef {object} Comparison
 * @property {string} title of the load
 * @property {string} peerName
 * @property {string} [counted] what the load counts, "event" by default
 * @property {number} [shareMin] target: least rate of the broker divided by that of the peer
 * @property {{ readonly broker: () => Promise<LoadResult>, readonly peer?: (() => Promise<LoadResult>) | undefined }} runs no `peer` if it is not installed
 */

/**
 * The latencies are null if the load does not time each event.
 * @typedef {{ readonly eventsPerSecond: number, readonly p50Ms: number | null, readonly p99Ms: number | null, readonly serverCpuUsPerEvent: number }} LoadResult
 */

/** Runs the load on both products in each round. @param {{ readonly rounds: number }} context @param {Comparison} comparison */
export async function measureComparison({ rounds }, comparison) {
  const results = [];
  for (let round = 0; round <= rounds; round += 1) results.push(await measureRound(comparison.runs, round));
  // The first round only warms up the JIT compilers.
  return toFigures(results.slice(1), comparison);
}

/** The broker and the peer take turns to go first: the machine may be busier in the second half of a round. */
async function measureRound(runs, round) {
  const names = Object.keys(runs).filter((name) => runs[name] !== undefined);
  const order = round % 2 === 0 ? names : names.toReversed();
  const results = {};
  for (const name of order) results[name] = await runs[name]();
  return results;
}

function toFigures(rounds, { title, peerName, counted = "event", shareMin }) {
  const valuesOf = (product, key) => rounds.map((round) => round[product][key]);
  const rows = [
    { what: "rate", unit: `${counted}s/s`, key: "eventsPerSecond" },
    { what: "median", unit: "ms", key: "p50Ms" },
    { what: "p99", unit: "ms", key: "p99Ms" },
    { what: "processor time", unit: `µs/${counted}`, key: "serverCpuUsPerEvent" },
  ];
  const hasPeer = rounds.every(({ peer }) => peer !== undefined);
  const measured = rows.filter(({ key }) => rounds.every(({ broker }) => broker[key] !== null));
  const figures = measured.flatMap(({ what, unit, key }) => [
    { name: `${title}: ${what}`, unit, values: valuesOf("broker", key) },
    ...(hasPeer ? [{ name: `${title}: ${what} of ${peerName}`, unit, values: valuesOf("peer", key) }] : []),
  ]);
  if (hasPeer) {
    const values = rounds.map(({ broker, peer }) => broker.eventsPerSecond / peer.eventsPerSecond);
    figures.push({ name: `${title}: rate as a share of ${peerName}'s`, unit: "", values, atLeast: shareMin });
  }
  return figures.map(toFigure);
}
