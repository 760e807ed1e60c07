import { anvilWorld, embeddedWorld, type World } from "./world.ts";

export const instantWorld = anvilWorld({ blockTimeS: 0 });
export const clockWorld = anvilWorld({ blockTimeS: 0.25, protocol: "ws" });

/** All worlds of a single broker, one for each kind of chain. */
export const chainWorlds: readonly World[] = [embeddedWorld, instantWorld, clockWorld];
