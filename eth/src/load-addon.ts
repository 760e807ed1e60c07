import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

/**
 * Loads the binding of a package to its native addon; undefined if this machine cannot load the addon. The package's main file would fall
 * back to JavaScript without a word, secp256k1 even to `elliptic`, which must neither sign nor judge signatures.
 */
export function loadAddon(bindings: "secp256k1/bindings.js" | "keccak/bindings.js"): unknown {
  try {
    return require(bindings);
  } catch {
    return undefined;
  }
}
