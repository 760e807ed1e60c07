import { expect, test } from "vitest";
import { once } from "./once.ts";

test("builds the value at the first call, and only once even if it is undefined", () => {
  let builds = 0;
  const get = once(() => {
    builds += 1;
    return undefined;
  });
  expect(builds).toBe(0);
  expect([get(), get()]).toEqual([undefined, undefined]);
  expect(builds).toBe(1);
});

test("builds again after a failure", () => {
  let builds = 0;
  const get = once(() => {
    builds += 1;
    if (builds === 1) throw new Error("not yet");
    return builds;
  });
  expect(get).toThrow("not yet");
  expect([get(), get()]).toEqual([2, 2]);
});
