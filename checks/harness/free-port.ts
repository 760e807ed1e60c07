import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:net";

/**
 * These ports are below those that the system gives to outgoing connections. Otherwise such a connection could take a server's port while the server restarts.
 */
const portRange = { from: 20_000, to: 32_000 };
/**
 * Ports that a process claims at once, as one block. The process listens on the block's first port until it ends, and gives out the others. So processes that
 * test in parallel never share a port. This matters for a port that looks free because its server has not started yet, or is restarting.
 */
const blockSize = 100;
const blockCount = (portRange.to - portRange.from) / blockSize;

/** The ports of the last claimed block that nobody has yet: from `next` to before `end`. */
let next = 0;
let end = 0;

/** A free port of the loopback address, given to one caller only, so that a server can restart on it. */
export function findFreePort(): Promise<number> {
  return findFreePorts(1);
}

/** Reserves `count` consecutive free ports, and returns the first. `count` must be lower than the size of a block. */
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

/** Listens on the port, and returns the server; undefined if the port is taken. */
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
