/** Within a minute, the machine's speed varies by more than some targets allow. So the comparisons for these targets run in many short rounds. */
export const shortDurations = { warmUpMs: 500, measureMs: 1_000 };
/** Short rounds that replace one usual round. */
const shortRoundsPerRound = 8;

/** The number of rounds for loads that last {@link shortDurations}. */
export function manyOf({ rounds }) {
  return { rounds: shortRoundsPerRound * rounds };
}

/** Warms the JIT compilers, by one unmeasured run if no other way is given, then runs `rounds` times. */
export async function repeat({ rounds }, run, warmUp = run) {
  await warmUp();
  const results = [];
  for (let round = 0; round < rounds; round += 1) results.push(await run());
  return results;
}
