import { Allowance } from "../../lib/allowance.ts";
import { BoundedLog } from "../../lib/bounded-log.ts";
import { BoundedMap } from "../../lib/bounded-map.ts";
import type { Logger } from "../../lib/logger.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Protocol } from "./caller.ts";
import type { ClientCertificate } from "./credential.ts";

/** Where a credential came from. The HTTP listener checks credentials before it knows the protocol of a request. */
export interface LogInOrigin {
  readonly address: string | undefined;
  readonly protocol: Protocol | "HTTP";
  /** The client's certificate. */
  readonly certificate?: ClientCertificate | undefined;
}

/** Number of failed log-ins of one address that get an answer without delay; each second allows one more. */
const atOnceMax = 20;
/** How long a further failed log-in waits for its answer, in milliseconds. */
export const heldMs = 1_000;
/** Maximum number of failed log-ins of one address that wait; the broker closes the connections of further ones without an answer. */
export const heldPerAddressMax = 100;
/** Maximum number of failed log-ins of all addresses that wait; the broker closes the connections of further ones without an answer. */
const heldMax = 2_000;
/** Number of new connections that the broker accepts from a flooding address at once, and per second; it closes further ones unread. */
export const floodConnectionsMax = 100;
/** Maximum number of cached addresses; one more replaces the address whose last failed log-in is oldest. */
export const addressesMax = 10_000;
/** Maximum number of log lines about failed log-ins in a burst; each second allows one more. */
const linesMax = 20;

interface Address {
  readonly allowance: Allowance;
  held: number;
}

/** The state of an address that floods the broker with wrong credentials. */
interface Flood {
  /** Allowance of new connections. */
  readonly allowance: Allowance;
  /** When a connection was last refused, in milliseconds of the monotonic clock; before the first refusal, when the flood began. */
  refusedAt: number;
}

/**
 * Slows clients that guess credentials: after a few wrong ones from an address, the broker delays its answers to further wrong ones. It never delays the
 * answer to a valid credential on an open connection, so an attacker cannot block other clients at its address. It accepts few new connections from a
 * flooding address.
 */
export class FailedLogIns {
  readonly #clock: Clock;
  readonly #addresses = new BoundedMap<string, Address>(addressesMax);
  /** A flood begins when an address has {@link heldPerAddressMax} log-ins waiting, and ends when none of its connections was refused for {@link heldMs}. */
  readonly #floods = new Map<string, Flood>();
  readonly #log: BoundedLog;
  #held = 0;

  constructor({ clock, logger }: { readonly clock: Clock; readonly logger: Logger }) {
    this.#clock = clock;
    this.#log = new BoundedLog({ logger, clock, lines: { atOnce: linesMax, perSecond: 1 } });
  }

  /** Notes a failed log-in. Undefined means: answer at once. Otherwise wait for the promise: true means answer, false means close without an answer. */
  note({ address: from, protocol }: LogInOrigin, reason: string): Promise<boolean> | undefined {
    this.#log.info("log-in refused", { address: from, protocol, reason });
    const network = toNetwork(from ?? "");
    const address = this.#find(network);
    if (address.allowance.take()) return undefined;
    if (address.held >= heldPerAddressMax || this.#held >= heldMax) return Promise.resolve(false);
    return this.#hold(network, address);
  }

  /** Whether to accept a new connection. Accepts few from a flooding address, because a refusal costs less than a log-in. */
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

  /** Finds or adds the state of an address, and makes it the newest. */
  #find(network: string): Address {
    const known = this.#addresses.get(network);
    const address = known ?? { allowance: new Allowance({ atOnce: atOnceMax, perSecond: 1 }, this.#clock), held: 0 };
    this.#addresses.set(network, address);
    return address;
  }
}

/** Number of groups of an IPv6 address, and of those that name its /64 network. */
const groupsOfAddress = 8;
const groupsOfNetwork = 4;

/** The /64 network of an IPv6 address: its owner can use all of its addresses. Other addresses are returned unchanged. */
export function toNetwork(address: string): string {
  if (!address.includes(":") || address.includes(".")) return address;
  const [front = [], back = []] = address.split("::").map((part) => (part === "" ? [] : part.split(":")));
  const zeros = Array.from({ length: Math.max(0, groupsOfAddress - front.length - back.length) }, () => "0");
  const network = [...front, ...zeros, ...back].slice(0, groupsOfNetwork);
  // The network of all zeros contains the loopback and unspecified addresses: do not count them as one.
  return network.every((group) => group === "0") ? address : `${network.join(":")}::`;
}
