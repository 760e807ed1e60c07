import { expect, test } from "vitest";
import { readFragment, templates, toFragment } from "./templates.ts";

test.each([...templates, { name: "odd", topic: "a&b=#/%", content: "x\ny +é&json=true", isJson: false }])(
  "readFragment restores the draft that toFragment encoded: $name",
  ({ topic, content, isJson }) => {
    expect(readFragment(toFragment({ topic, content, isJson }))).toEqual({ topic, content, isJson });
  },
);

test.each(["", "#", "#x", "#content=1"])("the fragment %j has no draft", (fragment) => {
  expect(readFragment(fragment)).toBeUndefined();
});
