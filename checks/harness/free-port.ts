import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

/** Below those that systems give to outgoing connections: one of them could take a port while whoever listens there is away. */
const portRange = { from: 20_000, to: 32_000 };
/** Test files that run at once have ports of their own: one that is free may have been given to somebody who does not listen yet. */
const sliceCount = 4;
const sliceSize = (portRange.to - portRange.from) / sliceCount;
const sliceFrom = portRange.from + (Number(process.env["VITEST_POOL_ID"] ?? "0") % sliceCount) * sliceSize;

/** Of the slice; files that follow one another begin at different places. */
let next = randomInt(sliceSize);

/** A port of the loopback address that nobody listens on, that nobody else is given, and that stays free while its user is restarted. */
export function findFreePort(): Promise<number> {
  return findFreePorts(1);
}

/** The first of several such ports in a row. */
export async function findFreePorts(count: number): Promise<number> {
  for (;;) {
    const first = take(count);
    const free = await Promise.all(Array.from({ length: count }, (_, index) => isFree(first + index)));
    if (free.every(Boolean)) return first;
  }
}

/** The next so many of the slice; none is given twice before all were. */
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
