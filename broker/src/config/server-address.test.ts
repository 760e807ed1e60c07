import { expect, test } from "vitest";
import { isHostPort, isServerAddress } from "./server-address.ts";

test.each(["10.0.0.2", "10.0.0.2:5353", "::1", "[::1]:53", "[fd00::2]:65535"])(
  "accepts %s as the address of a server",
  (text) => {
    expect(isServerAddress(text)).toBe(true);
  },
);

test.each([
  "",
  "dns.example",
  "10.0.0",
  "10.0.0.2:",
  "10.0.0.2:0",
  "10.0.0.2:65536",
  "[::1]",
  "[10.0.0.2]:53",
  "::1:53x",
])("refuses %j as the address of a server", (text) => {
  expect(isServerAddress(text)).toBe(false);
});

test.each(["node-1:8080", "node-1:08080", "10.0.0.7:1", "[fd00::7]:65535"])(
  "accepts %s as the address of a node",
  (text) => {
    expect(isHostPort(text)).toBe(true);
  },
);

test.each([
  "",
  "node-1",
  "node-1:",
  "node-1:0",
  "node-1:65536",
  "node-1:99999",
  "node-1:000080",
  "fd00::7:80",
  "http://node-1:80",
])("refuses %j as the address of a node", (text) => {
  expect(isHostPort(text)).toBe(false);
});
