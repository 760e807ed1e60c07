import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/** Below those that systems give to outgoing connections and to whoever asks for any port: it stays free while nobody listens there. */
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
