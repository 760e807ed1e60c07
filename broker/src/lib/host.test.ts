import { expect, it } from "vitest";
import { loopbackOf, toHostPort } from "./host.ts";

it.each([
  ["0.0.0.0", "127.0.0.1"],
  ["::", "::1"],
  ["0:0:0:0:0:0:0:0", "::1"],
  ["0::0", "::1"],
  ["::1", undefined],
  ["127.0.0.1", undefined],
  ["0", undefined],
  ["broker.example.org", undefined],
])("a machine reaches its own listener on %s at %s", (host, loopback) => {
  expect(loopbackOf(host)).toBe(loopback);
});

it.each([
  ["127.0.0.1", "127.0.0.1:80"],
  ["broker.example.org", "broker.example.org:80"],
  ["2001:db8::1", "[2001:db8::1]:80"],
])("the host %s with a port is written as %s", (host, written) => {
  expect(toHostPort(host, 80)).toBe(written);
});
