import { expect, test } from "vitest";
import { parseHosts } from "./hosts-file.ts";

test("returns the addresses of each name, and ignores comments and other lines", () => {
  const hosts = parseHosts(
    "# 10.0.0.9 comment\n10.0.0.1\tOne one.example # first\n::1  one\nnonsense two\n10.0.0.1 one\n\n",
  );
  expect(Object.fromEntries(hosts)).toEqual({ one: ["10.0.0.1", "::1"], "one.example": ["10.0.0.1"] });
});
