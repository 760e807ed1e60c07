import { fileURLToPath } from "node:url";

/** The built worker, seen from dist and from src alike: worker threads do not read TypeScript. */
export function findWorkerFile(): string {
  return fileURLToPath(new URL("../dist/worker.js", import.meta.url));
}
