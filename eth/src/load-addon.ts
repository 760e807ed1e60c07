import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

/**
 * Loads the native addon of `secp256k1`; undefined if this machine cannot load it. The package's main file would silently fall back to `elliptic`, which must
 * neither sign nor verify signatures.
 */
export function loadAddon(): unknown {
  try {
    return require("secp256k1/bindings.js");
  } catch {
    return undefined;
  }
}
