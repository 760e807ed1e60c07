import { afterAll, describe } from "vitest";
import { clusterWorld } from "./cluster-world.ts";
import { anvilWorld, embeddedWorld, type World } from "./world.ts";

/** Every chain that one broker is checked on. */
export const chainWorlds: readonly World[] = [
  embeddedWorld,
  anvilWorld({ blockTimeS: 0 }),
  anvilWorld({ blockTimeS: 1, protocol: "ws" }),
];

const worlds = [...chainWorlds, clusterWorld()];

/** Runs a suite on all worlds at once, since those whose blocks come by the clock mostly wait; in each, one block after another. */
export function onEveryWorld(describeSuite: (world: World) => void): void {
  for (const world of worlds) {
    const describeWorld = (world.isAvailable ?? true) ? describe.concurrent : describe.skip;
    describeWorld(world.name, () => {
      afterAll(async () => world.close?.());
      describe.sequential("one after another", () => describeSuite(world));
    });
  }
}
