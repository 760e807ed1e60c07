import fc from "fast-check";

const seedDefault = 20_261_129;

/**
 * Seed of the random histories. By default each run has the same histories, so that a test fails with the change that breaks it. CHECKS_SEED sets another
 * seed; with CHECKS_ROUNDS alone, each run has new histories.
 */
const { CHECKS_SEED: seed, CHECKS_ROUNDS: rounds } = process.env;
if (seed !== undefined) fc.configureGlobal({ seed: Number(seed) });
else if (rounds === undefined) fc.configureGlobal({ seed: seedDefault });
