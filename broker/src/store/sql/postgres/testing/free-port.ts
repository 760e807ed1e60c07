import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/** Finds a port below the range from which systems assign ports, so that it stays free until a server listens on it. */
export async function findFreePort(): Promise<number> {
  for (;;) {
    const port = randomInt(14_000, 17_000);
    const isFree = await new Promise((resolve) => {
      const probe = createServer().once("error", () => resolve(false));
      probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
    });
    if (isFree) return port;
  }
}
