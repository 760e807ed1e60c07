/** Packages that the bundle does not have: those with machine code, which stay where npm installed them, and an optional one of `pg`. */
export const external = ["@photostructure/sqlite", "keccak", "secp256k1", "pg-native"];
