import { expect, it } from "vitest";
import { groupIdCharactersMax, parseGroupId } from "./group-id.ts";

it.each(["1", "~", "g".repeat(groupIdCharactersMax)])("accepts the groupId %s", (text) => {
  expect(parseGroupId(text)).toBe(text);
});

it.each(["", " 1 ", "1 2", "gruppe-ä", "g".repeat(groupIdCharactersMax + 1)])(
  "refuses the groupId %j, and says that it may have no space",
  (text) => {
    const message = expect.stringMatching(/is not 1 to 64 printable ASCII characters without a space$/);
    expect(() => parseGroupId(text)).toThrow(expect.objectContaining({ code: 100_306, message }));
  },
);
