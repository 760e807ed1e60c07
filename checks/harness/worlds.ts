import { anvilWorld, embeddedWorld, type World } from "./world.ts";

export const instantWorld = anvilWorld({ blockTimeS: 0 });
export const clockWorld = anvilWorld({ blockTimeS: 0.25, protocol: "ws" });

/** Every chain that one broker is checked on. */
export const chainWorlds: readonly World[] = [embeddedWorld, instantWorld, clockWorld];
