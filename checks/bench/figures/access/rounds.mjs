/** The machine's speed changes by more within a minute than some targets allow, so what they compare runs in rounds that are short and many. */
export const shortDurations = { warmUpMs: 500, measureMs: 1_000 };
/** Short rounds for each of the usual ones. */
const shortRounds = 8;

/** The rounds of what takes {@link shortDurations}. */
export function manyOf({ rounds }) {
  return { rounds: shortRounds * rounds };
}

/** Runs once unmeasured, for the compilers, then as often as the context says. */
export async function repeat({ rounds }, run) {
  await run();
  const results = [];
  for (let round = 0; round < rounds; round += 1) results.push(await run());
  return results;
}
