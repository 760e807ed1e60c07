import { expect, it } from "vitest";
import { findTraceParent, withoutTraceParent, withTraceParent } from "./trace-parent.ts";

const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

it("the trace of a request becomes an extension, which can be found and removed", () => {
  const extensions = withTraceParent([["svc-a", "1"]], trace, "svc-");
  expect(extensions).toEqual([
    ["svc-a", "1"],
    ["svc-traceparent", trace],
  ]);
  expect(findTraceParent(extensions, "svc-")).toBe(trace);
  expect(findTraceParent(extensions, "x-")).toBeUndefined();
  expect(withoutTraceParent(extensions, "svc-")).toEqual([["svc-a", "1"]]);
});

it("a traceparent extension of the publish itself wins over the trace of its request", () => {
  const own = [["svc-traceparent", "mine"]] as const;
  expect(withTraceParent(own, trace, "svc-")).toBe(own);
});

it.each([
  "",
  "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
  "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
  "00-00000000000000000000000000000000-b7ad6b7169203331-01",
  "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
  "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
  "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\nx: y",
  `01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-${"x".repeat(201)}`,
])("%j is not a valid trace: it is neither added to an event nor found in one", (text) => {
  expect(withTraceParent([], text, "svc-")).toEqual([]);
  expect(findTraceParent([["svc-traceparent", text]], "svc-")).toBeUndefined();
});

it("a trace of a later version may have more fields", () => {
  expect(findTraceParent([["svc-traceparent", `cc${trace.slice(2)}-more`]], "svc-")).toBe(`cc${trace.slice(2)}-more`);
});
