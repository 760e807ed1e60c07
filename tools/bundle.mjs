// Bundles the compiled broker, its command and the chain's workers: loading one file takes a third of the processor time of loading six
// hundred. Names and lines stay readable for stack traces.
import { readFileSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "rolldown";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const input = {
  stele: join(root, "broker", "dist", "stele.js"),
  worker: join(root, "chain", "dist", "worker.js"),
  "reader-worker": join(root, "chain", "dist", "reader-worker.js"),
};
/** Packages with machine code, which stay where npm installed them, and an optional one of `pg`. */
const external = ["@photostructure/sqlite", "keccak", "secp256k1", "pg-native"];

/** Packages find their package.json by its path, which the bundle does not keep. */
const ownVersions = {
  name: "own-versions",
  transform: {
    filter: { code: /createRequire\(import\.meta\.url\)\("[./]+package\.json"\)/ },
    handler: (code, id) =>
      code.replace(/createRequire\(import\.meta\.url\)\("([./]+package\.json)"\)/, (_call, path) =>
        JSON.stringify({ version: JSON.parse(readFileSync(join(dirname(id), path), "utf8")).version }),
      ),
  },
};

const dir = join(root, "broker", "dist", "bundle");
rmSync(dir, { recursive: true, force: true });
await build({
  input,
  external,
  platform: "node",
  plugins: [ownVersions],
  logLevel: "warn",
  output: { dir, format: "esm", chunkFileNames: "[name].js" },
});
