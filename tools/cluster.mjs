// `npm run cluster`: several nodes of one broker, PostgreSQL and a chain on this machine, for trying out. `--help` prints the flags.
import { readOptions, usage } from "./cluster/options.mjs";
import { findBinaries, missingPostgres } from "./postgres-programs.mjs";
import { prepare } from "./prepare.mjs";

const options = tryReadOptions();
if (options === undefined) process.exit(2);
if (options.isHelp) {
  process.stdout.write(usage);
  process.exit(0);
}
if (findBinaries() === undefined) {
  console.error(missingPostgres);
  process.exit(1);
}
prepare();
// Import this only now: it needs packages, which `prepare` may have had to install first.
const { runCluster } = await import("./cluster/run-cluster.mjs");
await runCluster(options);

/** Parses the flags. Prints an error and returns undefined if they are wrong. */
function tryReadOptions() {
  try {
    return readOptions(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`${error.message}\n\n${usage}`);
    return undefined;
  }
}
