import { expect, test } from "vitest";
import { findReceiverRule } from "./receiver-pattern.ts";

test.each([
  ["hooks.example.org", "https://hooks.example.org/a", true],
  ["hooks.example.org", "http://hooks.example.org:8080/a", true],
  ["Hooks.Example.org", "http://HOOKS.example.org./", true],
  ["hooks.example.org", "http://other.hooks.example.org/", false],
  ["hooks.example.org:8080", "http://hooks.example.org:8080/", true],
  ["hooks.example.org:8080", "http://hooks.example.org/", false],
  ["hooks.example.org:443", "https://hooks.example.org/", true],
  ["*.example.org", "http://a.b.example.org/", true],
  ["*.example.org", "http://example.org/", false],
  ["*.example.org", "http://badexample.org/", false],
  ["https://hooks.example.org", "https://hooks.example.org/", true],
  ["https://hooks.example.org", "http://hooks.example.org/", false],
  ["https://hooks.example.org", "https://hooks.example.org:8443/", false],
  ["http://*.example.org:8080", "http://a.example.org:8080/", true],
  ["127.0.0.1", "http://127.0.0.1:9999/", true],
  ["[::1]", "http://[::1]:9999/", true],
])("the pattern %s matches %s: %s", (pattern, url, isMatch) => {
  expect(findReceiverRule(pattern)?.(new URL(url))).toBe(isMatch);
});

test.each(["", "*", "*.", "a..b", "http://", "ftp://a.example", "https://a.example/path", "a b", "-a", "a:123456"])(
  "refuses the pattern %j",
  (text) => {
    expect(findReceiverRule(text)).toBeUndefined();
  },
);
