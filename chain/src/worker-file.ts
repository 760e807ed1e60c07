import { fileURLToPath } from "node:url";

const folder = import.meta.url.endsWith(".ts") ? "../dist" : ".";

/** A built worker, seen from src, dist and the broker's bundle alike: worker threads do not read TypeScript. */
export function findWorkerFile(name: "worker" | "reader-worker"): string {
  return fileURLToPath(new URL(`${folder}/${name}.js`, import.meta.url));
}
