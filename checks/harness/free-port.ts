import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

/** Below the system's ports for outgoing connections: such a connection could take a server's port while the server restarts. */
const portRange = { from: 20_000, to: 32_000 };
/** Parallel test files use separate slices of the range: a port that looks free may be meant for a server that does not listen yet. */
const sliceCount = 4;
const sliceSize = (portRange.to - portRange.from) / sliceCount;
const sliceFrom = portRange.from + (Number(process.env["VITEST_POOL_ID"] ?? "0") % sliceCount) * sliceSize;

/** Offset in the slice; files that run one after another begin at different ports. */
let next = randomInt(sliceSize);

/** A free port of the loopback address, given to one caller only, so that a server can restart on it. */
export function findFreePort(): Promise<number> {
  return findFreePorts(1);
}

/** The first of several consecutive free ports. */
export async function findFreePorts(count: number): Promise<number> {
  for (;;) {
    const first = take(count);
    const free = await Promise.all(Array.from({ length: count }, (_, index) => isFree(first + index)));
    if (free.every(Boolean)) return first;
  }
}

/** The next ports of the slice. Starts again at the slice's first port when too few are left. */
function take(count: number): number {
  if (next + count > sliceSize) next = 0;
  const first = sliceFrom + next;
  next += count;
  return first;
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
