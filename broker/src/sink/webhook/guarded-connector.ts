import type { LookupAddress } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { callbackify } from "node:util";
import { buildConnector } from "undici";
import type { AddressPolicy } from "./address-policy.ts";
import { AttemptError } from "./attempt-error.ts";
import { loopbackPortMin, portOf } from "./callback-ports.ts";

/** Resolves a host name to its addresses, in order of preference. Throws if there are none. */
export type Resolver = (hostname: string) => Promise<readonly string[]>;

export interface GuardOptions {
  readonly policy: AddressPolicy;
  readonly resolver: Resolver;
}

/**
 * How long to try one address of a name before the next one, in milliseconds. Node's 250 ms are too short for a distant receiver, and for a lost packet, which
 * TCP sends again after a second: Node would leave the good address, and might find only one that leads nowhere. At most a quarter of the
 * attempt's timeout, so that the attempt comes to the next address.
 */
const addressMsMax = 2_000;

/**
 * Connects only to allowed addresses. The look-up returns checked addresses, and the socket connects to one of them without a second look-up, so DNS
 * rebinding has no effect.
 */
export function createGuardedConnector(guard: GuardOptions & { readonly timeoutMs: number }): buildConnector.connector {
  const addressMs = Math.min(addressMsMax, Math.ceil(guard.timeoutMs / 4));
  const connectorFor = (port: number) =>
    buildConnector({
      timeout: guard.timeoutMs,
      autoSelectFamilyAttemptTimeout: addressMs,
      lookup: createGuardedLookup({ ...guard, port }),
    });
  // A look-up does not know the port; the policy only asks whether it is below `loopbackPortMin`.
  const connectLow = connectorFor(loopbackPortMin - 1);
  const connectHigh = connectorFor(loopbackPortMin);
  return (options, callback) => {
    const port = portOf(options);
    // A socket does not resolve an IP address, so the look-up below would never see it.
    if (isIP(options.hostname) !== 0 && !guard.policy(options.hostname, port)) {
      return process.nextTick(() => callback(refusal([options.hostname]), null));
    }
    const connect = port < loopbackPortMin ? connectLow : connectHigh;
    return connect(options, callback);
  };
}

/** The failure of an attempt at addresses that callbacks may not reach. */
export function refusal(addresses: readonly string[]): AttemptError {
  return new AttemptError(`callbacks may not reach the address ${addresses.join(", ")}`);
}

interface LookupOptions extends GuardOptions {
  readonly port: number;
}

function createGuardedLookup(guard: LookupOptions): LookupFunction {
  const findAllowed = callbackify((hostname: string) => findAllowedAddresses(hostname, guard));
  return (hostname, options, callback) => {
    findAllowed(hostname, (error, allowed) => {
      const first = allowed?.[0];
      if (error !== null || first === undefined) callback(error ?? refusal([]), "");
      else if (options.all === true) callback(null, [...allowed]);
      else callback(null, first.address, first.family);
    });
  };
}

async function findAllowedAddresses(hostname: string, options: LookupOptions): Promise<LookupAddress[]> {
  const { policy, resolver, port } = options;
  const found = await resolver(hostname);
  const good = found.filter((address) => policy(address, port));
  const allowed = good.map((address) => ({ address, family: isIP(address) }));
  if (allowed.length === 0) throw refusal(found);
  return allowed;
}
