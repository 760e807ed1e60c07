/** Packages that are not in the bundle: those with native code, which stay where npm installs them, and an optional dependency of `pg`. */
export const external = ["@photostructure/sqlite", "secp256k1", "pg-native"];
