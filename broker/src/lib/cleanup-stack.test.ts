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
    }, name);
  }
  await expect(cleanup.closeAll()).rejects.toThrow("c");
  expect(closed).toEqual(["c", "b", "a"]);
});

it("a second closeAll waits for the first", async () => {
  const gate = createDeferred<void>();
  const closed: string[] = [];
  const cleanup = new CleanupStack();
  cleanup.add(() => void closed.push("last"), "last");
  cleanup.add(() => gate.promise, "gate");
  const first = cleanup.closeAll();
  const second = cleanup.closeAll();
  expect(closed).toEqual([]);
  gate.resolve();
  await Promise.all([first, second]);
  expect(closed).toEqual(["last"]);
});

it("when the signal aborts, begins every remaining step, waits for none, and names the first that has not ended", async () => {
  const closed: string[] = [];
  const cleanup = new CleanupStack();
  cleanup.add(() => void closed.push("first"), "first");
  cleanup.add(() => new Promise(() => closed.push("second")), "second");
  cleanup.add(() => new Promise(() => closed.push("third")), "third");
  const ending = new AbortController();
  const end = cleanup.closeAll(ending.signal);
  ending.abort();
  await expect(end).rejects.toThrow("not stopped in time: third");
  expect(closed).toEqual(["third", "second", "first"]);
});

it("throws no unhandled error when a step fails after the signal has aborted", async () => {
  const gate = createDeferred<void>();
  const cleanup = new CleanupStack();
  cleanup.add(() => gate.promise, "gate");
  await expect(cleanup.closeAll(AbortSignal.abort())).rejects.toThrow("not stopped in time: gate");
  gate.reject(new Error("too late"));
  await new Promise((resolve) => setImmediate(resolve));
});
