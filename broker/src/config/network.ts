import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

/** Whether a text is an IP address without a zone such as `%eth0`: lists of addresses would ignore the zone. */
export function isAddress(text: string): boolean {
  return isIP(text) !== 0 && !text.includes("%");
}

/** Whether a text is a network in CIDR form. `ipaddr.js` alone would read `10/8` as 0.0.0.10/8, and `010.0.0.0/8` as 8.0.0.0/8. */
export function isNetwork(text: string): boolean {
  const [address = ""] = text.split("/");
  return isAddress(address) && ipaddr.isValidCIDR(text);
}

/**
 * Networks that would have no effect in a list for callbacks. The address policy refuses unspecified addresses whatever the list says, and judges an IPv4
 * address inside an IPv6 address as IPv4.
 */
const unreachable = ["0.0.0.0/8", "::/128", "::ffff:0:0/96", "64:ff9b::/96"].map((text) => ipaddr.parseCIDR(text));

export const callbackNetworkRule =
  "each IPv4 network written as IPv4, and none of them in 0.0.0.0/8 or ::/128, which callbacks never reach";

/** Whether a text is a network that callbacks can reach. `ipaddr.js` reads `::10.0.0.0/104` as `::ffff:10.0.0.0/104`. */
export function isCallbackNetwork(text: string): boolean {
  if (!isNetwork(text) || (text.includes(":") && text.includes("."))) return false;
  const [base, prefixLength] = ipaddr.parseCIDR(text);
  return !unreachable.some(
    ([of, length]) => base.kind() === of.kind() && prefixLength >= length && base.match(of, length),
  );
}
