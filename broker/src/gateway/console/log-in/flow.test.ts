import { expect, test } from "vitest";
import { decodeFlow, encodeFlow, toPlace, toView } from "./flow.ts";

test.each([
  ["/", "/one/console/"],
  ["/tail?topic=a%2F%23&after=1", "/one/console/tail?topic=a%2F%23&after=1"],
  ["/events/2cf24dba-1-2", "/one/console/events/2cf24dba-1-2"],
  ["/tail#fragment", "/one/console/tail"],
  ["", "/one/console/"],
  ["tail", "/one/console/"],
  ["//evil.example/", "/one/console//evil.example/"],
  ["/..", "/one/console/"],
  ["/../rest/publish?topic=a", "/one/console/"],
  ["/%2e%2e/%2E%2E//evil.example", "/one/console/"],
  ["/..\\..\\rest", "/one/console/"],
  ["/x/../../consoles/", "/one/console/"],
  ["@evil.example", "/one/console/"],
  [".evil.example", "/one/console/"],
  ["/a\r\nset-cookie: a=b", "/one/console/"],
  [`/${"x".repeat(1024)}`, "/one/console/"],
])("sends a browser that asked for the view %j to %s after its log-in", (view, place) => {
  expect(toPlace(view, "https://events.example.org/one/console")).toBe(place);
});

test.each([
  { state: "", nonce: "n".repeat(43), verifier: "v".repeat(43) },
  { state: "s".repeat(43), nonce: "n", verifier: "v".repeat(43) },
  { state: "s".repeat(43), nonce: "n".repeat(43), verifier: ` ${"v".repeat(42)}` },
])("refuses a flow with the malformed secrets %j", (secrets) => {
  expect(decodeFlow(encodeFlow({ name: "acme", secrets, view: "/" }))).toBeUndefined();
});

test("a flow with the longest view fits into its cookie, and decodes unchanged", () => {
  const secrets = { state: "s".repeat(43), nonce: "n".repeat(43), verifier: "v".repeat(43) };
  const flow = { name: "n".repeat(64), secrets, view: toView(`/${'"'.repeat(1023)}`) };
  const text = encodeFlow(flow);
  expect(decodeFlow(text)).toEqual(flow);
  expect(text.length).toBeLessThan(4096 - 100);
});
