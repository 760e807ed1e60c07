import { fileURLToPath } from "node:url";

/** A built worker, seen from dist and from src alike: worker threads do not read TypeScript. */
export function findWorkerFile(name: "worker" | "reader-worker"): string {
  return fileURLToPath(new URL(`../dist/${name}.js`, import.meta.url));
}
