import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { environmentName, flagName } from "../config/setting.ts";
import type { Config } from "../config/settings.ts";
import type { Logger } from "../lib/logger.ts";
import type { Listener, Place } from "../gateway/shared/connection/listener.ts";

/** Where a listener listens, and the settings that name this place. */
export interface ConfiguredPlace extends Place {
  readonly hostSetting: keyof Config;
  readonly portSetting: keyof Config;
  /** The settings do not name the port: if the broker cannot listen there, it starts without this listener. */
  readonly isOptional?: boolean;
}

/** A listener that is not started yet, and its place. */
export interface PlacedListener {
  readonly listener: Listener;
  readonly place: ConfiguredPlace;
}

/** A started listener. */
export interface ListenerAddress {
  readonly name: string;
  /** The address as clients write it. */
  readonly address: string;
}

/** The end of a message: how an operator changes a setting. */
function choose(setting: keyof Config): string {
  return `by ${flagName(setting)} or ${environmentName(setting)}`;
}

/** Why the broker cannot listen and what to do, by the system's error code. */
const refusals: ReadonlyMap<string, (place: ConfiguredPlace) => string> = new Map([
  [
    "EADDRINUSE",
    ({ host, port, portSetting }) =>
      `Port ${port} of ${host} is taken: stop the program that listens there, or choose another one ${choose(portSetting)}.`,
  ],
  [
    "EACCES",
    ({ host, port, portSetting }) =>
      `Port ${port} of ${host} may not be used by this user: systems keep ports below 1024 for root. Choose another one ${choose(portSetting)}.`,
  ],
  [
    "EADDRNOTAVAIL",
    ({ host, hostSetting }) =>
      `${host} is not an address of this machine. Choose one ${choose(hostSetting)}: 127.0.0.1 serves this machine, 0.0.0.0 everyone.`,
  ],
  [
    "ENOTFOUND",
    ({ host, hostSetting }) =>
      `${host} is a name that this machine cannot resolve. Choose another one, or an address, ${choose(hostSetting)}.`,
  ],
]);

/** Listens for a moment on all places that are not optional, so that a start fails before it changes anything. @throws Error like {@link listenAll}. */
export async function checkPlaces(places: readonly ConfiguredPlace[]): Promise<void> {
  const probes: Server[] = [];
  try {
    for (const place of places.filter(({ isOptional }) => isOptional !== true)) {
      const probe = createServer();
      probes.push(probe);
      await explained(place, async () => {
        probe.listen({ host: place.host, port: place.port });
        await once(probe, "listening");
      });
    }
  } finally {
    await Promise.all(probes.filter(({ listening }) => listening).map(async (probe) => once(probe.close(), "close")));
  }
}

/**
 * Starts listeners in order, and leaves out optional ones that cannot listen, with a warning.
 * @throws Error that says where the broker cannot listen, why, and what to do.
 */
export async function listenAll(
  listeners: readonly PlacedListener[],
  logger: Logger,
): Promise<readonly ListenerAddress[]> {
  const addresses: ListenerAddress[] = [];
  for (const { listener, place } of listeners) {
    const { name } = listener;
    try {
      addresses.push({ name, address: await explained(place, () => listener.listen(place)) });
    } catch (error) {
      if (place.isOptional !== true) throw error;
      logger.warn(`${name} is not served`, { reason: error instanceof Error ? error.message : String(error) });
    }
  }
  return addresses;
}

async function explained<Result>(place: ConfiguredPlace, action: () => Promise<Result>): Promise<Result> {
  try {
    return await action();
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
    const refusal = refusals.get(code);
    throw refusal === undefined ? cause : new Error(refusal(place), { cause });
  }
}

/** Lets all listeners serve for `delayMs`, then drains them all at once, and then closes them all, even if one fails. */
export async function closeAll(listeners: readonly PlacedListener[], delayMs: number): Promise<void> {
  const drained = await Promise.allSettled(listeners.map(async ({ listener }) => listener.drain(delayMs)));
  const closed = await Promise.allSettled(listeners.map(async ({ listener }) => listener.close()));
  for (const outcome of [...drained, ...closed]) if (outcome.status === "rejected") throw outcome.reason;
}
