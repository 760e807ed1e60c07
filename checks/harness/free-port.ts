import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:net";

/** Below the system's ports for outgoing connections: such a connection could take a server's port while the server restarts. */
const portRange = { from: 20_000, to: 32_000 };
/**
 * Ports that a process claims at once. It listens on a block's first port until it ends, and gives out the others. Processes that test in parallel so have
 * ports of their own: a port that looks free may be meant for a server that does not listen yet, or not at the moment.
 */
const blockSize = 100;
const blockCount = (portRange.to - portRange.from) / blockSize;

/** What is left of the block claimed last. */
let next = 0;
let end = 0;

/** A free port of the loopback address, given to one caller only, so that a server can restart on it. */
export function findFreePort(): Promise<number> {
  return findFreePorts(1);
}

/** The first of several consecutive free ports, fewer than a block has. */
export async function findFreePorts(count: number): Promise<number> {
  for (;;) {
    while (next + count > end) await claimBlock();
    const first = next;
    next += count;
    const free = await Promise.all(Array.from({ length: count }, (_, index) => isFree(first + index)));
    if (free.every(Boolean)) return first;
  }
}

async function claimBlock(): Promise<void> {
  for (;;) {
    const first = portRange.from + randomInt(blockCount) * blockSize;
    const claim = await listenOn(first);
    if (claim === undefined) continue;
    claim.unref();
    next = first + 1;
    end = first + blockSize;
    return;
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = await listenOn(port);
  if (server === undefined) return false;
  server.close();
  await once(server, "close");
  return true;
}

/** The server that listens on the port, or nothing if the port is taken. */
async function listenOn(port: number): Promise<Server | undefined> {
  const server = createServer();
  try {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
  } catch {
    return undefined;
  }
  return server;
}
