import { expect, test } from "vitest";
import { isBlockedPort, portOf } from "./callback-ports.ts";

test.each([
  ["http://h/", 80],
  ["http://h:80/", 80],
  ["https://h/", 443],
  ["https://h:8443/", 8443],
  ["http://h:443/", 443],
  ["http://h:0/", 0],
])("%s has port %d", (url, port) => {
  expect(portOf(new URL(url))).toBe(port);
});

test.each([22, 25, 53, 110, 143, 587, 993, 2049, 5060, 6000, 6667, 10_080, 0])("port %d is blocked", (port) => {
  expect(isBlockedPort(port)).toBe(true);
});

test.each([80, 443, 631, 1024, 3000, 5432, 6379, 8080, 9000, 65_535])("port %d is not blocked", (port) => {
  expect(isBlockedPort(port)).toBe(false);
});
