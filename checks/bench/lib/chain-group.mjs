import { devKeys } from "./anvil.mjs";

/**
 * The settings of a broker with one group, on the chain of an anvil.
 * @param {import("./anvil.mjs").Anvil} anvil @param {{ readonly keyIndex?: number, readonly group?: Record<string, unknown> }} options
 */
export function chainSettings(anvil, { keyIndex = 0, group = {} } = {}) {
  const entry = { id: "1", endpoints: [anvil.url], signer: { privateKeyEnv: "BENCH_SIGNER_KEY" }, ...group };
  return { BENCH_SIGNER_KEY: devKeys[keyIndex], STELE_GROUPS: JSON.stringify([entry]) };
}
