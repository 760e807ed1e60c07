/** Random numbers: the same seed gives the same sequence. */
export interface Random {
  /** In [0,1). */
  fraction(): number;
  /** An integer in [0,bound). */
  below(bound: number): number;
  pick<T>(items: readonly T[]): T;
}

/** Mulberry32: small, and good enough to choose what to break. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const fraction = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (bound: number): number => Math.floor(fraction() * bound);
  return {
    fraction,
    below,
    pick: (items) => {
      const item = items[below(items.length)];
      if (item === undefined) throw new Error("there is nothing to pick from");
      return item;
    },
  };
}

/**
 * The seeds of a test: those in the environment variable named `variable`, separated by commas; else CHECKS_ROUNDS seeds from CHECKS_SEED on; else `fixed`.
 * @throws Error if a seed in the variable is not a whole number.
 */
export function seedsOf(variable: string, fixed: readonly number[]): readonly number[] {
  const { [variable]: given, CHECKS_ROUNDS: rounds, CHECKS_SEED: first } = process.env;
  if (given) return given.split(",").map((text) => toSeed(text, variable));
  if (rounds) return Array.from({ length: Number(rounds) }, (_, index) => Number(first) + index);
  return fixed;
}

function toSeed(text: string, variable: string): number {
  const seed = Number(text);
  if (!Number.isSafeInteger(seed)) throw new Error(`${variable}: "${text}" is not a whole number`);
  return seed;
}
