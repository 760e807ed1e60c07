import { expect, test } from "vitest";
import { once } from "./once.ts";

test("builds nothing before somebody asks, and then once, whatever the value", () => {
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
