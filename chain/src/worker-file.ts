import { fileURLToPath } from "node:url";

const folder = import.meta.url.endsWith(".ts") ? "../dist/workers" : "./workers";

/** A bundled worker, seen from src, dist and the broker's bundle alike. Worker threads do not read TypeScript, and load one file three times faster. */
export function findWorkerFile(name: "worker" | "reader-worker"): string {
  return fileURLToPath(new URL(`${folder}/${name}.js`, import.meta.url));
}
