import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { loopbackPortMin } from "./callback-ports.ts";
import { hostOf } from "./callback-url.ts";

/** Addresses that callbacks may reach besides the public internet. */
export interface AddressPolicyOptions {
  /** Networks in CIDR form. */
  readonly allowNetworks: readonly string[];
  readonly allowLoopback: boolean;
  /** Addresses of this machine; none if absent. Callbacks may not reach them: a firewall may expose their services to this machine only. */
  readonly ownAddresses?: () => readonly string[];
}

/** Whether a callback may connect to an IP address and port. */
export type AddressPolicy = (address: string, port: number) => boolean;

type Ip = ipaddr.IPv4 | ipaddr.IPv6;
type Network = readonly [base: Ip, prefixLength: number];

/** The only range of public IPv6 addresses (RFC 4291, section 2.4). */
const globalUnicast = ipaddr.IPv6.parseCIDR("2000::/3");
/** IPv6 networks with an IPv4 address in their last 32 bits: mapped (RFC 4291), NAT64 (RFC 6052). */
const carriersOfIpv4 = [ipaddr.IPv6.parseCIDR("::ffff:0:0/96"), ipaddr.IPv6.parseCIDR("64:ff9b::/96")];
/** A public address at which Azure serves its machines' settings. */
const metadataAddress = "168.63.129.16";

/**
 * Builds the policy. It allows public addresses, the allowed networks and, if allowed, loopback at ports from 1024 on. It always refuses the unspecified
 * addresses, which systems connect to loopback. It also refuses addresses of this machine, and private, link-local, shared, multicast, documentation, reserved
 * and transition ranges. An IPv4 address inside an IPv6 one is judged as the IPv4 address.
 */
export function createAddressPolicy(options: AddressPolicyOptions): AddressPolicy {
  const networks = options.allowNetworks.map((text): Network => ipaddr.parseCIDR(text));
  return (address, port) => {
    const ip = findIp(address);
    if (ip === undefined || ip.range() === "unspecified") return false;
    if (ip.range() === "loopback" && port < loopbackPortMin) return false;
    if (networks.some((network) => contains(network, ip))) return true;
    if (ip.range() === "loopback") return options.allowLoopback;
    return isPublic(ip) && !isOwn(ip, options);
  };
}

function isOwn(ip: Ip, { ownAddresses }: AddressPolicyOptions): boolean {
  return ownAddresses?.().some((own) => findIp(own)?.toString() === ip.toString()) ?? false;
}

/** The address to judge; undefined for a text that is not an address, and for an address with a zone, which is never public. */
function findIp(address: string): Ip | undefined {
  const family = isIP(address);
  if (family === 0 || address.includes("%")) return undefined;
  if (family === 4) return ipaddr.parse(address);
  // ipaddr.js reads `::127.0.0.1` as `::ffff:127.0.0.1`, which is another address. A URL writes it without dots.
  return unwrap(ipaddr.parse(hostOf(new URL(`http://[${address}]`))));
}

function unwrap(ip: Ip): Ip {
  if (!isIpv6(ip) || !carriersOfIpv4.some((network) => ip.match(network))) return ip;
  return new ipaddr.IPv4(ip.toByteArray().slice(12));
}

function contains([base, prefixLength]: Network, ip: Ip): boolean {
  return base.kind() === ip.kind() && ip.match(base, prefixLength);
}

function isPublic(ip: Ip): boolean {
  if (ip.range() !== "unicast" || ip.toString() === metadataAddress) return false;
  return !isIpv6(ip) || ip.match(globalUnicast);
}

function isIpv6(ip: Ip): ip is ipaddr.IPv6 {
  return ip.kind() === "ipv6";
}
