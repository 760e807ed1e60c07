import { fileURLToPath } from "node:url";

const folder = import.meta.url.endsWith(".ts") ? "../dist/workers" : "./workers";

/** Path of a bundled worker, for src, dist and the broker's bundle. Worker threads cannot load TypeScript, and load one file three times faster than many. */
export function findWorkerFile(name: "worker" | "reader-worker"): string {
  return fileURLToPath(new URL(`${folder}/${name}.js`, import.meta.url));
}
