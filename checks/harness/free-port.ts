import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

/** Below those that systems give to outgoing connections: one of them could take a port while whoever listens there is away. */
const portRange = { from: 20_000, to: 32_000 };

/** A port of the loopback address that nobody listens on, and that stays free while its user is restarted. */
export function findFreePort(): Promise<number> {
  return findFreePorts(1);
}

/** The first of several such ports in a row. */
export async function findFreePorts(count: number): Promise<number> {
  for (;;) {
    const first = randomInt(portRange.from, portRange.to);
    const free = await Promise.all(Array.from({ length: count }, (_, index) => isFree(first + index)));
    if (free.every(Boolean)) return first;
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
