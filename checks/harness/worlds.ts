import { anvilWorld, embeddedWorld, type World } from "./world.ts";

/** Anvil makes a block for each transaction at once. */
export const instantAnvilWorld = anvilWorld({ blockTimeS: 0 });
/** Anvil makes blocks at intervals, and the broker reaches it over WebSocket. */
export const timedAnvilWorld = anvilWorld({ blockTimeS: 0.25, protocol: "ws" });

/** All worlds of a single broker, one for each kind of chain. */
export const chainWorlds: readonly World[] = [embeddedWorld, instantAnvilWorld, timedAnvilWorld];
