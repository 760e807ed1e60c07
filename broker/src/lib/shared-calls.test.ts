import { expect, test } from "vitest";
import { createDeferred } from "./deferred.ts";
import { SharedCalls } from "./shared-calls.ts";

test("concurrent calls for one key share one call and its failure; a later call begins a new one", async () => {
  const calls = new SharedCalls<string, number>();
  const first = createDeferred<number>();
  const begin = () => first.promise;
  const shared = [calls.run("a", begin), calls.run("a", async () => 2)];
  expect(await calls.run("b", async () => 3)).toBe(3);
  expect(calls.size).toBe(1);
  first.reject(new Error("failed"));
  expect((await Promise.allSettled(shared)).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(await calls.run("a", async () => 4)).toBe(4);
});
