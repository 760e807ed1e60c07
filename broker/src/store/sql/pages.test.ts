import { expect, it } from "vitest";
import { pagesOf } from "./pages.ts";

it.each([
  [0, []],
  [1, [1]],
  [7, [4, 2, 1]],
  [512, [512]],
  [1_337, [512, 512, 256, 32, 16, 8, 1]],
])("splits %d rows into pages of the lengths %j, in order", (count, lengths) => {
  const rows = Array.from({ length: count }, (_, index) => index);
  const pages = [...pagesOf(rows)];
  expect(pages.flat()).toEqual(rows);
  expect(pages.map(({ length }) => length)).toEqual(lengths);
});

it("splits rows into smaller pages if told so", () => {
  const pages = [...pagesOf([1, 2, 3, 4, 5, 6, 7], 2)];
  expect(pages).toEqual([[1, 2], [3, 4], [5, 6], [7]]);
});
