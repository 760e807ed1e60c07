import { choice, integer, type SettingsTable } from "./setting.ts";

const mebibyte = 2 ** 20;

/** Settings of the embedded chain. */
export const chainSettings = {
  chainId: integer({
    section: "Embedded chain",
    description: "Chain id of the embedded chain. It is part of the chain: a data folder keeps its first one.",
    default: 5_461_068,
    min: 1,
    max: 4_503_599_627_370_476,
  }),
  chainCheckInterval: integer({
    section: "Embedded chain",
    description:
      "The embedded chain runs most transactions with its own code. It runs one in this many with EthereumJS too and compares the results: " +
      "if they differ, it logs an error, uses EthereumJS' result, and runs all further transactions with EthereumJS. 1 compares each.",
    default: 1000,
    unit: "transactions",
    min: 1,
    max: 1_000_000,
  }),
  chainUnsavedBytesMax: integer({
    section: "Embedded chain",
    description:
      "The embedded chain first stores the state changes and index entries of new blocks unsorted. Once they have this many bytes, it sorts them into its tables. Each start reads the unsorted ones.",
    default: 8 * mebibyte,
    unit: "bytes",
    min: 0,
    max: 64 * mebibyte,
  }),
  chainEndpoint: choice(["on", "off"], {
    section: "Embedded chain",
    description: "Whether `/chain` serves the embedded chain over HTTP, read-only; see docs/chain.md.",
    default: "on",
  }),
} as const satisfies SettingsTable;
