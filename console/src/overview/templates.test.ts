import { expect, test } from "vitest";
import { readFragment, templates, toFragment } from "./templates.ts";

test.each([...templates, { name: "odd", topic: "a&b=#/%", content: "x\ny +é&json=true", isJson: false }])(
  "the address of a draft brings it back: $name",
  ({ topic, content, isJson }) => {
    expect(readFragment(toFragment({ topic, content, isJson }))).toEqual({ topic, content, isJson });
  },
);

test.each(["", "#", "#x", "#content=1"])("the fragment %j has no draft", (fragment) => {
  expect(readFragment(fragment)).toBeUndefined();
});
