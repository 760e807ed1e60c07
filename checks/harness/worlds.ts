import { describe } from "vitest";
import { anvilWorld, embeddedWorld, type World } from "./world.ts";

/** Every chain that the product is checked on. */
export const worlds: readonly World[] = [
  embeddedWorld,
  anvilWorld({ blockTimeS: 0 }),
  anvilWorld({ blockTimeS: 1, protocol: "ws" }),
];

/** Runs a suite on all worlds at once, since those whose blocks come by the clock mostly wait; in each, one block after another. */
export function onEveryWorld(describeSuite: (world: World) => void): void {
  for (const world of worlds) {
    describe.concurrent(world.name, () => {
      describe.sequential("one after another", () => describeSuite(world));
    });
  }
}
