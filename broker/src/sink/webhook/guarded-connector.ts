import type { LookupAddress } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { callbackify } from "node:util";
import { buildConnector } from "undici";
import type { AddressPolicy } from "./address-policy.ts";
import { AttemptError } from "./attempt-error.ts";
import { loopbackPortMin, portOf } from "./callback-ports.ts";

/** Looks a host name up: its addresses in order of preference. Throws when there are none. */
export type Resolver = (hostname: string) => Promise<readonly string[]>;

export interface GuardOptions {
  readonly policy: AddressPolicy;
  readonly resolver: Resolver;
}

/**
 * Connects to allowed addresses only. The look-up hands over nothing but checked addresses, and the socket connects to one of these: no
 * second look-up comes between, so a name that changes its mind (DNS rebinding) gains nothing.
 */
export function createGuardedConnector(guard: GuardOptions & { readonly timeoutMs: number }): buildConnector.connector {
  const connectorFor = (port: number) =>
    buildConnector({ timeout: guard.timeoutMs, lookup: createGuardedLookup({ ...guard, port }) });
  // A look-up is not told the port; the policy asks only on which side of the bound it is.
  const connectLow = connectorFor(loopbackPortMin - 1);
  const connectHigh = connectorFor(loopbackPortMin);
  return (options, callback) => {
    const port = portOf(options);
    // A socket looks no address up that is one already, so the look-up below would never see it.
    if (isIP(options.hostname) !== 0 && !guard.policy(options.hostname, port)) {
      process.nextTick(() => callback(refusal([options.hostname]), null));
      return;
    }
    const connect = port < loopbackPortMin ? connectLow : connectHigh;
    connect(options, callback);
  };
}

/** What an attempt, or a new subscription, is told of addresses that may not be reached. */
export function refusal(addresses: readonly string[]): AttemptError {
  return new AttemptError(`the address ${addresses.join(", ")} is not one that callbacks may reach`);
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
