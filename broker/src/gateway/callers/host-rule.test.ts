import { expect, test } from "vitest";
import { HostRule } from "./host-rule.ts";

const rule = new HostRule(["Node-1.internal", "*.example.org"]);

test.each([
  "127.0.0.1",
  "127.0.0.1:8080",
  "192.168.1.5:80",
  "[::1]",
  "[::1]:8080",
  "[2001:DB8::1]:1",
  "localhost",
  "LocalHost:8080",
  "localhost.",
  "a.b.localhost:1",
  "node-1.internal:9",
  "a.example.org",
  "a.b.EXAMPLE.org.",
])("%j is allowed", (host) => {
  expect(rule.allows(host)).toBe(true);
});

test.each([
  "",
  ":8080",
  "evil.example",
  "example.org",
  ".example.org",
  "xexample.org",
  ".localhost",
  "localhost.evil.example",
  "127.0.0.1.evil.example",
  "127.0.0.1.nip.io",
  "127.1",
  "2130706433",
  "0x7f000001",
  "0.0.0.0",
  "0.0.0.0:8080",
  "[::]",
  "[::ffff:7f00:1]",
  "[::ffff:127.0.0.1]:80",
  "[::7f00:1]",
  "::1",
  "[::1",
  "[localhost]",
  "[fe80::1%25eth0]",
  "user@localhost",
  "localhost:80:80",
  "localhost:http",
  "localhost/",
  "localhost#",
  "local host",
  "localhost, evil.example",
  `${"a".repeat(300)}.example.org`,
])("%j is not allowed", (host) => {
  expect(rule.allows(host)).toBe(false);
});

test("* allows every well-formed host", () => {
  const open = new HostRule(["*"]);
  for (const host of ["evil.example:1", "0.0.0.0", "[::]"]) expect(open.allows(host)).toBe(true);
  for (const host of ["", "a@b", "a/b"]) expect(open.allows(host)).toBe(false);
});

test("still allows each host after it has seen more hosts than it can remember", () => {
  const hosts = Array.from({ length: 2500 }, (_, index) => `n${index}.example.org`);
  for (const host of [...hosts, ...hosts]) expect(rule.allows(host)).toBe(true);
});
