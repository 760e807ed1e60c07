import type { IncomingMessage } from "node:http";
import { BlockList, isIP } from "node:net";

/** Finds the address of the client for which a proxy sent a request; undefined if no trusted proxy names one. */
export type FindForwarded = (request: Pick<IncomingMessage, "headers" | "socket">) => string | undefined;

/**
 * Reads `X-Forwarded-For` of requests that come from `trustedProxies`: addresses and networks in CIDR form. Each proxy appends the address that it sees. So the
 * last address that is not a trusted proxy is the client's; the addresses before it are only the client's claim.
 */
export function createForwardedFinder(trustedProxies: readonly string[]): FindForwarded {
  if (trustedProxies.length === 0) return () => undefined;
  const proxies = toBlockList(trustedProxies);
  const isProxy = (address: string): boolean => proxies.check(address, familyOf(address));
  return ({ headers, socket: { remoteAddress } }) => {
    if (remoteAddress === undefined || !isProxy(remoteAddress)) return undefined;
    const hops = String(headers["x-forwarded-for"] ?? "").split(",");
    let found: string | undefined;
    for (const hop of hops.toReversed()) {
      const address = withoutPort(hop.trim());
      if (isIP(address) === 0) return found;
      found = address;
      if (!isProxy(address)) return found;
    }
    return found;
  };
}

/** Some proxies add the port of the client: `192.0.2.1:4711`, `[2001:db8::1]:4711`. */
function withoutPort(hop: string): string {
  return (
    /^(?:\[(.*)\]|([\d.]+))(?::\d+)?$/
      .exec(hop)
      ?.slice(1)
      .find((address) => address !== undefined) ?? hop
  );
}

function toBlockList(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", prefixLength] = network.split("/");
    if (prefixLength === undefined) list.addAddress(address, familyOf(address));
    else list.addSubnet(address, Number(prefixLength), familyOf(address));
  }
  return list;
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return isIP(address) === 6 ? "ipv6" : "ipv4";
}
