import { expect, it } from "vitest";
import { parseCallbackFilter, parseOwnFilter, parseSharedFilter } from "./shared-filter.ts";

it.each([
  ["$share/a/b", { name: "a", filter: "b" }],
  ["$share/a/#", { name: "a", filter: "#" }],
  ["$share/a/+/b", { name: "a", filter: "+/b" }],
  ["$share/a//b", { name: "a", filter: "/b" }],
  ["$share/a/$share/b/c", { name: "a", filter: "$share/b/c" }],
  ["$shared/a/b", undefined],
  ["$share", undefined],
  ["a", undefined],
])("parses %s as %j", (text, expected) => {
  expect(parseSharedFilter(text)).toEqual(expected);
});

it.each(["$share/", "$share/a", "$share//b", "$share/+/b", "$share/a#/b", "$share/a+b/c"])(
  "refuses the filter %s",
  (text) => {
    expect(() => parseSharedFilter(text)).toThrow(expect.objectContaining({ code: 100109 }));
  },
);

it("refuses a share without a filter, or with a malformed filter", () => {
  expect(() => parseSharedFilter("$share/a/")).toThrow(expect.objectContaining({ code: 100103 }));
  expect(() => parseSharedFilter("$share/a/b#")).toThrow(expect.objectContaining({ code: 100109 }));
});

it("parseOwnFilter accepts filters that are not shared, and refuses a shared one", () => {
  expect(["$shared/a/#", "a/$share/b/+", "#"].map(parseOwnFilter)).toEqual(["$shared/a/#", "a/$share/b/+", "#"]);
  expect(() => parseOwnFilter("$share/a/#")).toThrow(
    expect.objectContaining({ code: 100109, message: expect.stringContaining("only MQTT has shared filters") }),
  );
  expect(() => parseOwnFilter("a#")).toThrow(expect.objectContaining({ code: 100109 }));
});

it("a callback can have a topic whose name looks like a shared filter", () => {
  expect(["$share/a/b", "$shared/a/#"].map(parseCallbackFilter)).toEqual(["$share/a/b", "$shared/a/#"]);
  for (const filter of ["$share/a/#", "$share/a/+/b", "a#"])
    expect(() => parseCallbackFilter(filter)).toThrow(expect.objectContaining({ code: 100109 }));
  expect(() => parseOwnFilter("$share/a/b")).toThrow(expect.objectContaining({ code: 100109 }));
});
