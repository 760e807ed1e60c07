import { expect, it } from "vitest";
import type * as FreePort from "./free-port.ts";

/**
 * Ports for each process. Both processes together get more than a quarter of the range: if they ignored each other's ports, some port would very likely be
 * given twice.
 */
const count = 1600;
let processes = 0;

it("findFreePort never gives two processes the same port, although no server listens on it yet", async () => {
  const [first, second] = [await loadForProcess(), await loadForProcess()];
  const ports = new Set<number>();
  for (let index = 0; index < count; index += 1) {
    for (const port of await Promise.all([first.findFreePort(), second.findFreePort()])) {
      expect(ports, `${port} was given twice`).not.toContain(port);
      ports.add(port);
    }
  }
});

it("findFreePorts(3) reserves three consecutive ports: the next call gives a port after them", async () => {
  const { findFreePort, findFreePorts } = await loadForProcess();
  const first = await findFreePorts(3);
  expect(await findFreePort()).toBeGreaterThanOrEqual(first + 3);
});

/** Loads the module again, with a state of its own as in another process: a different query string makes it a different module. */
async function loadForProcess(): Promise<typeof FreePort> {
  processes += 1;
  return import(`${import.meta.dirname}/free-port.ts?process=${processes}`);
}
