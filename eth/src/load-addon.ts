import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

/**
 * Loads a package's native addon; undefined if this machine cannot load it. The package's main file would silently fall back to JavaScript:
 * the main file of secp256k1 to `elliptic`, which must neither sign nor verify signatures.
 */
export function loadAddon(bindings: "secp256k1/bindings.js" | "keccak/bindings.js"): unknown {
  try {
    return require(bindings);
  } catch {
    return undefined;
  }
}
