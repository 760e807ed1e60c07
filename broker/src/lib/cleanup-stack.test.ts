import { expect, it } from "vitest";
import { CleanupStack } from "./cleanup-stack.ts";
import { createDeferred } from "./deferred.ts";

it("closes in reverse order, continues after a failure, and throws the first failure", async () => {
  const closed: string[] = [];
  const cleanup = new CleanupStack();
  for (const name of ["a", "b", "c"]) {
    cleanup.add(() => {
      closed.push(name);
      if (name !== "b") throw new Error(name);
    });
  }
  await expect(cleanup.closeAll()).rejects.toThrow("c");
  expect(closed).toEqual(["c", "b", "a"]);
});

it("a second closeAll waits for the first", async () => {
  const gate = createDeferred<void>();
  const closed: string[] = [];
  const cleanup = new CleanupStack();
  cleanup.add(() => void closed.push("last"));
  cleanup.add(() => gate.promise);
  const first = cleanup.closeAll();
  const second = cleanup.closeAll();
  expect(closed).toEqual([]);
  gate.resolve();
  await Promise.all([first, second]);
  expect(closed).toEqual(["last"]);
});
