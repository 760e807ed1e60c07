import { expect, test } from "vitest";
import { hostOf, parseCallbackUrl, urlCharactersMax } from "./callback-url.ts";

test.each([
  ["http://example.com/hook?a=b#c", "example.com"],
  ["HTTPS://EXAMPLE.com:8443", "example.com"],
  ["http://2130706433/", "127.0.0.1"],
  ["http://0x7f.1/", "127.0.0.1"],
  ["http://017700000001/", "127.0.0.1"],
  ["http://127.1/", "127.0.0.1"],
  ["http://①②⑦.0.0.1/", "127.0.0.1"],
  ["http://[::ffff:127.0.0.1]/", "::ffff:7f00:1"],
  ["http://[::1]:80/", "::1"],
  ["http://example.com/\u{1f600}", "example.com"],
])("parses the host of %s as %s", (text, host) => {
  const parsed = parseCallbackUrl(text);
  expect(parsed.isGood && hostOf(parsed.url)).toBe(host);
});

test.each([
  ["", "it is blank"],
  ["  ", "it is blank"],
  ["http://example.com/\0", "it contains a NUL character"],
  ["http://example.com/\ud83d", "it is not well-formed Unicode"],
  ["http://example.com/\ude00?\ud83d", "it is not well-formed Unicode"],
  ["example.com/hook", "it cannot be parsed"],
  ["/hook", "it cannot be parsed"],
  ["http://", "it cannot be parsed"],
  ["http://h:99999/", "it cannot be parsed"],
  ["http://a b/", "it cannot be parsed"],
  ["http://1.2.3.4.5/", "it cannot be parsed"],
  ["http://[fe80::1%25eth0]/", "it cannot be parsed"],
  ["ftp://example.com/", "the scheme is ftp, it must be http or https"],
  ["file:///etc/passwd", "the scheme is file, it must be http or https"],
  ["javascript:alert(1)", "the scheme is javascript, it must be http or https"],
  ["http://user@example.com/", "it contains a user name or a password"],
  ["http://user:hunter2@example.com/", "it contains a user name or a password"],
  ["http://example.com:25/", "callbacks may not reach port 25"],
  ["https://user.example:0/", "callbacks may not reach port 0"],
  [`http://h/${"a".repeat(urlCharactersMax)}`, "2057 characters, at most 2048"],
  [`http://h/${"\u2603".repeat(300)}`, "2709 characters when it is encoded, at most 2048"],
])("%s is refused: %s", (text, fault) => {
  const parsed = parseCallbackUrl(text);
  expect(parsed.isGood ? "" : parsed.fault).toBe(fault);
});
