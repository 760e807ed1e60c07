import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

/** Whether a text is an IP address, without a zone: no list of addresses takes one. */
export function isAddress(text: string): boolean {
  return isIP(text) !== 0 && !text.includes("%");
}

/** Whether a text is a network in CIDR form. `ipaddr.js` alone would read `10/8` as 0.0.0.10/8, and `010.0.0.0/8` as 8.0.0.0/8. */
export function isNetwork(text: string): boolean {
  const [address = ""] = text.split("/");
  return isAddress(address) && ipaddr.isValidCIDR(text);
}
