import { toFigure } from "./figure.mjs";

/**
 * One load on the broker and on a peer, which is another product.
 * @typedef {object} Comparison
 * @property {string} title of the load
 * @property {string} peerName
 * @property {string} [rate] unit of the rate, "events/s" by default
 * @property {string} [each] unit that the processor time is divided by, "event" by default
 * @property {number} [shareMin] target for the broker's rate, as a share of the peer's
 * @property {{ readonly broker: () => Promise<Findings>, readonly peer?: (() => Promise<Findings>) | undefined }} runs `peer` is missing if the peer is not installed
 */

/** @typedef {{ readonly eventsPerSecond: number, readonly p50Ms: number, readonly p99Ms: number, readonly serverCpuUsPerEvent: number }} Findings */

/** Runs both loads in each round. @param {{ readonly rounds: number }} context @param {Comparison} comparison */
export async function measureBeside({ rounds: count }, comparison) {
  const rounds = [];
  for (let round = 0; round <= count; round += 1) rounds.push(await measureRound(comparison.runs, round));
  // The first round only warms up the JIT compilers.
  return toFigures(rounds.slice(1), comparison);
}

/** Alternates which of the two goes first, because the machine may be busier in the second half of a round. */
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
  // A load that does not time single events has no latencies (null).
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
