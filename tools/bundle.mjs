// Bundles the compiled broker with its command, the chain's workers, and the console: loading one file takes a third of the processor time of loading six
// hundred. Bundles the workers a second time beside the chain's compiled modules, for programs that start a chain without the broker. Most of these are
// tests, which start hundreds of chains. Names and lines stay readable for stack traces.
import { readFileSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "rolldown";
import { bundleConsole } from "./bundle-console.mjs";
import { external } from "./bundle-externals.mjs";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const stele = join(root, "broker", "dist", "stele.js");
const worker = join(root, "chain", "dist", "worker.js");
const readerWorker = join(root, "chain", "dist", "reader-worker.js");

/** Inlines versions: modules read them from package.json at a relative path, which is wrong in the bundle. */
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

const never = join(root, "tools", "bundled-never.cjs");
/** Replaces modules that the broker uses in small part, or not at all. V8 reads the whole text of the bundle at each start. */
const replaced = new Map([
  ["undici", join(root, "tools", "bundled-undici.mjs")],
  ["../web/fetch/body.js", never], // of undici, for bodies that are form data
  ["@fastify/ajv-compiler", never],
  ["@fastify/fast-json-stringify-compiler", never],
  ["light-my-request", never],
]);
const smallerPackages = { name: "smaller-packages", resolveId: (id) => replaced.get(id) };

// Both bundles have the workers where `chain/src/worker-file.ts` looks for them.
await bundle(
  { stele, "workers/worker": worker, "workers/reader-worker": readerWorker },
  join(root, "broker", "dist", "bundle"),
);
await bundleConsole({ root, outDir: join(root, "broker", "dist", "bundle", "console") });
await bundle({ worker, "reader-worker": readerWorker }, join(root, "chain", "dist", "workers"));

async function bundle(input, dir) {
  rmSync(dir, { recursive: true, force: true });
  await build({
    input,
    external,
    platform: "node",
    plugins: [ownVersions, smallerPackages],
    logLevel: "warn",
    // V8 keeps the text of a module in memory, with two bytes for every character if one of them is not in Latin-1. Comments can be left out, because
    // the package contains the licences in a file.
    output: { dir, format: "esm", chunkFileNames: "[name].js", charset: "ascii", comments: false },
  });
}
