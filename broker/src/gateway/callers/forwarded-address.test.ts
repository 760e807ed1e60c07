import { expect, it } from "vitest";
import { createForwardedFinder } from "./forwarded-address.ts";

const proxies = ["10.0.0.7", "10.1.0.0/16", "fd00::/8"];

it.each([
  ["the address that a trusted proxy saw", "10.0.0.7", "192.0.2.1", "192.0.2.1"],
  ["of a network, too", "10.1.2.3", "192.0.2.1", "192.0.2.1"],
  ["over IPv6", "fd00::1", "2001:db8::1", "2001:db8::1"],
  ["one that the proxy gave with its port", "10.0.0.7", "192.0.2.1:4711", "192.0.2.1"],
  ["one of IPv6 with its port", "10.0.0.7", "[2001:db8::1]:4711, 10.1.0.1:80", "2001:db8::1"],
  ["one of IPv6 in brackets", "10.0.0.7", "[2001:db8::1]", "2001:db8::1"],
  ["where the listener sees IPv4 as IPv6", "::ffff:10.0.0.7", "192.0.2.1", "192.0.2.1"],
  ["the last one that is no proxy, not what a client made up", "10.0.0.7", "198.51.100.9, 192.0.2.1", "192.0.2.1"],
  ["behind two proxies", "10.0.0.7", "198.51.100.9, 192.0.2.1 ,10.1.0.1", "192.0.2.1"],
  ["a client in the network of the proxies", "10.0.0.7", "10.1.0.9", "10.1.0.9"],
  ["a proxy that is followed by what is no address", "10.0.0.7", "unknown, 10.1.0.1", "10.1.0.1"],
  ["none where a proxy says none", "10.0.0.7", "", undefined],
  ["none where the last one is no address", "10.0.0.7", "192.0.2.1, unknown", undefined],
  ["none where brackets hold no address", "10.0.0.7", "[192.0.2.1:80", undefined],
  ["none from an address that is not trusted", "10.0.0.8", "192.0.2.1", undefined],
  ["none from a client that names a proxy", "192.0.2.1", "10.0.0.7", undefined],
  ["none of a connection that has ended", undefined, "192.0.2.1", undefined],
])("finds %s", (...[, remoteAddress, header, found]) => {
  const request = { socket: { remoteAddress }, headers: { "x-forwarded-for": header } };
  expect(createForwardedFinder(proxies)(request as never)).toBe(found);
  expect(createForwardedFinder([])(request as never)).toBeUndefined();
});
