import { choice, integer, type SettingsTable, text } from "./setting.ts";

const dayMs = 24 * 60 * 60 * 1000;
const mebibyte = 2 ** 20;

/** Settings of the data folder and the store. */
export const storageSettings = {
  dataDir: text({
    section: "Storage",
    description:
      "Folder of the chain, the store and the signer's key; created if missing. Each node has its own, even if nodes share a database.",
    default: "./data",
    rule: "a path that begins with another character than ~: write a home folder as an absolute path, and ./~/… for a folder named ~ in the working directory, as earlier versions made",
    // A shell replaces ~ and ~name, but not in `--data-dir=~/stele` or a file: the broker would create a folder of this name in its working directory.
    check: (value) => value !== "" && !value.includes("\0") && !value.startsWith("~"),
  }),
  coordination: choice(["store", "none"], {
    section: "Storage",
    description:
      "Where to keep subscriptions: `store` keeps them in the data folder or the database; `none` keeps them in memory and refuses JSON-RPC unSubscribe; see [cluster.md](cluster.md#coordination-none).",
    default: "store",
  }),
  scrubPeriodMs: integer({
    section: "Storage",
    description:
      "Pause between two rounds in which the broker slowly verifies its whole index and the embedded chain, and repairs damage in each from the other; 0 for none. The first round begins within an hour of a start, and the next one within an hour of a round that could not repair all. If nodes share a database, the node that writes the index does it, and begins within an hour of becoming that node.",
    default: 7 * dayMs,
    unit: "milliseconds",
    min: 0,
    max: 365 * dayMs,
  }),
  storeRetentionMs: integer({
    section: "Storage",
    description:
      "How long the store keeps its copy of events; 0 for ever. Older ones are read from the chain again, which takes longer, and damage in an embedded chain's older blocks cannot be repaired from the copy; see [backup.md](backup.md#retention-of-the-copy-of-events). A group may have its own.",
    default: 0,
    unit: "milliseconds",
    min: 0,
    max: 10 * 365 * dayMs,
  }),
  diskFreeWarnBytes: integer({
    section: "Storage",
    description:
      "The broker warns, in the log and at `/health/ready`, while the disk of the data folder has less free space; 0 for never. See [backup.md](backup.md#disk).",
    default: 512 * mebibyte,
    unit: "bytes",
    min: 0,
    max: 2 ** 50,
  }),
  secretKeyFile: text({
    section: "Storage",
    description:
      "File with the keys that encrypt the secrets of subscriptions in the store, newest first; see [callbacks.md](callbacks.md#secrets-at-rest). Nodes that share a database must share it too; without it, they refuse secrets.",
    default: "",
    defaultText: "empty: `secrets.key` in the data folder, created with the first secret",
    rule: "empty or a path",
    check: (value) => !value.includes("\0"),
  }),
} as const satisfies SettingsTable;
