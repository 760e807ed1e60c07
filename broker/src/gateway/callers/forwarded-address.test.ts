import { expect, it } from "vitest";
import { createForwardedFinder } from "./forwarded-address.ts";

const proxies = ["10.0.0.7", "10.1.0.0/16", "fd00::/8"];

it.each([
  ["the address that a trusted proxy saw", "10.0.0.7", "192.0.2.1", "192.0.2.1"],
  ["the address that a proxy of a trusted network saw", "10.1.2.3", "192.0.2.1", "192.0.2.1"],
  ["the address that an IPv6 proxy saw", "fd00::1", "2001:db8::1", "2001:db8::1"],
  ["an IPv4 address with a port", "10.0.0.7", "192.0.2.1:4711", "192.0.2.1"],
  ["an IPv6 address with a port", "10.0.0.7", "[2001:db8::1]:4711, 10.1.0.1:80", "2001:db8::1"],
  ["an IPv6 address in brackets", "10.0.0.7", "[2001:db8::1]", "2001:db8::1"],
  ["the address if the listener sees the proxy's IPv4 address as IPv6", "::ffff:10.0.0.7", "192.0.2.1", "192.0.2.1"],
  ["the last address that is not a proxy, not the client's claim", "10.0.0.7", "198.51.100.9, 192.0.2.1", "192.0.2.1"],
  ["the client behind two proxies", "10.0.0.7", "198.51.100.9, 192.0.2.1 ,10.1.0.1", "192.0.2.1"],
  ["a client in the network of the proxies", "10.0.0.7", "10.1.0.9", "10.1.0.9"],
  ["the first proxy if the entry before it is not an address", "10.0.0.7", "unknown, 10.1.0.1", "10.1.0.1"],
  ["nothing in an empty header", "10.0.0.7", "", undefined],
  ["nothing if the last entry is not an address", "10.0.0.7", "192.0.2.1, unknown", undefined],
  ["nothing if the last entry has an open bracket", "10.0.0.7", "[192.0.2.1:80", undefined],
  ["nothing if the sender is not trusted", "10.0.0.8", "192.0.2.1", undefined],
  ["nothing if an untrusted client names a proxy", "192.0.2.1", "10.0.0.7", undefined],
  ["nothing once the connection has ended", undefined, "192.0.2.1", undefined],
])("finds %s", (...[, remoteAddress, header, found]) => {
  const request = { socket: { remoteAddress }, headers: { "x-forwarded-for": header } };
  expect(createForwardedFinder(proxies)(request as never)).toBe(found);
  expect(createForwardedFinder([])(request as never)).toBeUndefined();
});
