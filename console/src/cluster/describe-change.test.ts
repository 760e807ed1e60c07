import { expect, it } from "vitest";
import { describeChange } from "./describe-change.ts";

const at = "2026-01-01T00:00:00.000Z";

it.each([
  [{ what: "joined" }, "a:1 joined"],
  [{ what: "left" }, "a:1 left"],
  [{ what: "gone" }, "a:1 is gone: it did not renew its membership in time"],
  [{ what: "took-over", groupId: "2", from: "b:1" }, "a:1 took over the index of group 2 from b:1"],
  [{ what: "took-over", groupId: "2", from: "a:1" }, "a:1 took over the index of group 2 from its earlier membership"],
  [{ what: "took-over", subscriptions: 1, from: "b:1" }, "a:1 took over 1 subscription from b:1"],
  [{ what: "took-over", subscriptions: 2_000 }, "a:1 took over 2,000 subscriptions"],
  [{ what: "sleeps" }, "a:1 sleeps"], // A kind of change that this console does not know.
])("describeChange describes %j as %j", (change, text) => {
  expect(describeChange({ at, node: "a:1", ...change })).toBe(text);
});
