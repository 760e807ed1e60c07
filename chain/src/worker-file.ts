import { fileURLToPath } from "node:url";

const folder = import.meta.url.endsWith(".ts") ? "../dist/workers" : "./workers";

/**
 * Path of a bundled worker, whether this module runs from src, from dist or in the broker's bundle. Worker threads cannot load TypeScript, and load one file
 * three times as fast as many.
 */
export function findWorkerFile(name: "worker" | "reader-worker"): string {
  return fileURLToPath(new URL(`${folder}/${name}.js`, import.meta.url));
}
