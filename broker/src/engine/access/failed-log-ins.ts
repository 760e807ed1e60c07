import type { Logger } from "../../lib/logger.ts";
import { Allowance } from "../../lib/allowance.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Protocol } from "./caller.ts";
import type { ClientCertificate } from "./credential.ts";

/** Where a credential came from. HTTP serves several protocols, and asks before it knows which. */
export interface LogInOrigin {
  readonly address: string | undefined;
  readonly protocol: Protocol | "HTTP";
  /** What the client showed. */
  readonly certificate?: ClientCertificate | undefined;
}

/** Failed log-ins of one address that are answered at once; each second brings one more. */
const atOnceMax = 20;
/** How long any further one waits for its answer, in milliseconds. */
export const heldMs = 1_000;
/** Failed log-ins of one address that wait at once; the connections of further ones are closed without an answer. */
export const heldPerAddressMax = 100;
/** The same of all addresses together. */
const heldMax = 2_000;
/** New connections of an address with so many waiting that may come at once, and each second; further ones are closed unread. */
export const floodConnectionsMax = 100;
/** Addresses that are remembered; a further one takes the place of the one that was quiet for longest. */
export const addressesMax = 10_000;
/** Lines of the log about failed log-ins that may come at once; each second brings one more. */
const linesMax = 20;

interface Address {
  readonly allowance: Allowance;
  held: number;
}

/** An address from which wrong credentials flood. */
interface Flood {
  /** Of new connections. */
  readonly allowance: Allowance;
  /** When a connection was refused last, in milliseconds of the monotonic clock; at first, when it began. */
  refusedAt: number;
}

/**
 * Slows whoever tries credentials: past a few, the answer to a wrong one comes late. A right one on a connection that is open is never slowed, so that nobody
 * can end the work of others who come from the same address. While an address floods, its new connections are few.
 */
export class FailedLogIns {
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #addresses = new Map<string, Address>();
  /** Each from the moment that an address has {@link heldPerAddressMax} waiting until none of its connections was refused for {@link heldMs}. */
  readonly #floods = new Map<string, Flood>();
  readonly #lines: Allowance;
  #held = 0;
  #omitted = 0;

  constructor({ clock, logger }: { readonly clock: Clock; readonly logger: Logger }) {
    this.#clock = clock;
    this.#logger = logger;
    this.#lines = new Allowance({ atOnce: linesMax, perSecond: 1 }, clock);
  }

  /** Notes a failed log-in. Undefined where it is answered at once; else whether it is answered at all, once the time for that has come. */
  note(origin: LogInOrigin, reason: string): Promise<boolean> | undefined {
    this.#log(origin, reason);
    const network = toNetwork(origin.address ?? "");
    const address = this.#find(network);
    if (address.allowance.take()) return undefined;
    if (address.held >= heldPerAddressMax || this.#held >= heldMax) return Promise.resolve(false);
    return this.#hold(network, address);
  }

  /** Whether a new connection is taken: of an address from which wrong credentials flood, few are, and a refused one costs little. */
  mayConnect(findAddress: () => string | undefined): boolean {
    if (this.#floods.size === 0) return true;
    const flood = this.#floods.get(toNetwork(findAddress() ?? ""));
    if (flood === undefined || flood.allowance.take()) return true;
    flood.refusedAt = this.#clock.monotonic();
    return false;
  }

  #hold(network: string, address: Address): Promise<boolean> {
    address.held += 1;
    this.#held += 1;
    if (address.held === heldPerAddressMax) this.#beginFlood(network);
    return new Promise((resolve) => {
      this.#clock.after(heldMs, () => {
        address.held -= 1;
        this.#held -= 1;
        resolve(true);
      });
    });
  }

  #beginFlood(network: string): void {
    if (this.#floods.has(network)) return;
    const size = { atOnce: floodConnectionsMax, perSecond: floodConnectionsMax };
    const flood = { allowance: new Allowance(size, this.#clock), refusedAt: this.#clock.monotonic() };
    this.#floods.set(network, flood);
    this.#endWhenOver(network, flood);
  }

  #endWhenOver(network: string, flood: Flood): void {
    this.#clock.after(heldMs, () => {
      const isOver = this.#clock.monotonic() - flood.refusedAt >= heldMs;
      if (isOver) this.#floods.delete(network);
      else this.#endWhenOver(network, flood);
    });
  }

  /** The latest is last, so that the first is the one to forget. */
  #find(network: string): Address {
    const known = this.#addresses.get(network);
    const address = known ?? { allowance: new Allowance({ atOnce: atOnceMax, perSecond: 1 }, this.#clock), held: 0 };
    if (known !== undefined) this.#addresses.delete(network);
    else if (this.#addresses.size >= addressesMax) {
      const [oldest = ""] = this.#addresses.keys();
      this.#addresses.delete(oldest);
    }
    this.#addresses.set(network, address);
    return address;
  }

  #log({ address, protocol }: LogInOrigin, reason: string): void {
    if (!this.#lines.take()) {
      this.#omitted += 1;
      return;
    }
    const omitted = this.#omitted === 0 ? {} : { omitted: this.#omitted };
    this.#omitted = 0;
    this.#logger.info("log-in refused", { address, protocol, reason, ...omitted });
  }
}

/** Groups of an IPv6 address, and how many of them name its network. */
const groupsOfAddress = 8;
const groupsOfNetwork = 4;

/** Whoever has one address of IPv6 has all of its /64. `::` may stand for a part of the network as well. */
export function toNetwork(address: string): string {
  if (!address.includes(":") || address.includes(".")) return address;
  const [front = [], back = []] = address.split("::").map((part) => (part === "" ? [] : part.split(":")));
  const zeros = Array.from({ length: Math.max(0, groupsOfAddress - front.length - back.length) }, () => "0");
  const network = [...front, ...zeros, ...back].slice(0, groupsOfNetwork);
  // Loopback and unspecified addresses share a network with nobody else.
  return network.every((group) => group === "0") ? address : `${network.join(":")}::`;
}
