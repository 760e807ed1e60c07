import { expect, test } from "vitest";
import { listensOnLoopbackOnly } from "./derived.ts";

test.each([
  ["127.0.0.1", true],
  ["127.1.2.3", true],
  ["localhost", true],
  ["::1", true],
  ["0.0.0.0", false],
  ["::", false],
  ["10.0.0.1", false],
  ["127.0.0.1.example", false],
  ["127.example", false],
])("%s: %s", (host, isLoopback) => {
  expect(listensOnLoopbackOnly({ host })).toBe(isLoopback);
});
