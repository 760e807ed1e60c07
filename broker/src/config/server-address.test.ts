import { expect, test } from "vitest";
import { isServerAddress } from "./server-address.ts";

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
