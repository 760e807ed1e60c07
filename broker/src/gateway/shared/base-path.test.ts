import { expect, it } from "vitest";
import { isRestTarget, toPath } from "./base-path.ts";

it.each([
  ["/a/b?c=/d", "/a/b"],
  ["/a#b?c", "/a"],
  ["http://localhost:80/rest/open?topic=http://b/c", "/rest/open"],
  ["HTTPS://[::1]/a", "/a"],
  ["http://localhost?a=/b", "/"],
  ["/http://localhost/a", "/http://localhost/a"],
  ["*", "*"],
])("the path of the request target %j is %j", (target, path) => {
  expect(toPath(target)).toBe(path);
});

it.each([
  ["/ctx/rest/nothing", true],
  ["http://localhost/ctx/rest/nothing?a=b", true],
  ["http://localhost/rest/nothing", false],
  ["http://ctx/rest/nothing", false],
])("whether the request target %j is under /ctx/rest: %j", (target, isRest) => {
  expect(isRestTarget(target, "/ctx")).toBe(isRest);
});
