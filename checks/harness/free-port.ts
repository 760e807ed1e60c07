import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

/** Below those that systems give to outgoing connections: one of them could take a port while whoever listens there is away. */
const portRange = { from: 20_000, to: 32_000 };

/** A port of the loopback address that nobody listens on, and that stays free while its user is restarted. */
export async function findFreePort(): Promise<number> {
  for (;;) {
    const port = randomInt(portRange.from, portRange.to);
    if (await isFree(port)) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
  } catch {
    return false;
  }
  server.close();
  await once(server, "close");
  return true;
}
