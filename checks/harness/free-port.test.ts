import { expect, it } from "vitest";
import type * as FreePort from "./free-port.ts";

/** More than a quarter of all ports for each process: chosen without regard to the other's ports, some would very likely be the same. */
const count = 1600;
let processes = 0;

it("gives no port to two processes, although no server listens yet", async () => {
  const [first, second] = [await loadForProcess(), await loadForProcess()];
  const ports = new Set<number>();
  for (let index = 0; index < count; index += 1) {
    for (const port of await Promise.all([first.findFreePort(), second.findFreePort()])) {
      expect(ports, `${port} was given twice`).not.toContain(port);
      ports.add(port);
    }
  }
});

it("gives consecutive ports", async () => {
  const { findFreePort, findFreePorts } = await loadForProcess();
  const first = await findFreePorts(3);
  expect(await findFreePort()).toBeGreaterThanOrEqual(first + 3);
});

/** The module with a state of its own, as each process has it: a query makes it another module. */
async function loadForProcess(): Promise<typeof FreePort> {
  processes += 1;
  return import(`${import.meta.dirname}/free-port.ts?process=${processes}`);
}
