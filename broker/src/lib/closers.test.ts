import { expect, it } from "vitest";
import { Closers } from "./closers.ts";
import { createDeferred } from "./deferred.ts";

it("closes in reverse order, continues after a failure, and throws the first", async () => {
  const closed: string[] = [];
  const closers = new Closers();
  for (const name of ["a", "b", "c"]) {
    closers.add(() => {
      closed.push(name);
      if (name !== "b") throw new Error(name);
    });
  }
  await expect(closers.closeAll()).rejects.toThrow("c");
  expect(closed).toEqual(["c", "b", "a"]);
});

it("a second call waits for the first", async () => {
  const gate = createDeferred<void>();
  const closed: string[] = [];
  const closers = new Closers();
  closers.add(() => void closed.push("last"));
  closers.add(() => gate.promise);
  const first = closers.closeAll();
  const second = closers.closeAll();
  expect(closed).toEqual([]);
  gate.resolve();
  await Promise.all([first, second]);
  expect(closed).toEqual(["last"]);
});
