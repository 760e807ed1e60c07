import { expect, it } from "vitest";
import { createDeferred } from "./deferred.ts";
import { KeyedMutex } from "./keyed-mutex.ts";

const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
};

it("runs tasks of one key in order, even after a failure, and tasks of other keys concurrently", async () => {
  const mutex = new KeyedMutex<string>();
  const gate = createDeferred<void>();
  const done: string[] = [];
  const failing = mutex.run("a", async () => {
    await gate.promise;
    throw new Error("no");
  });
  const second = mutex.run("a", async () => void done.push("a"));
  await mutex.run("b", async () => void done.push("b"));
  gate.resolve();
  await expect(failing).rejects.toThrow("no");
  await second;
  expect(done).toEqual(["b", "a"]);
});

it("a task with several keys waits for earlier tasks of each key, and later tasks wait for it", async () => {
  const mutex = new KeyedMutex<string>();
  const [before, during] = [createDeferred<void>(), createDeferred<void>()];
  const done: string[] = [];
  void mutex.run("b", () => before.promise);
  const all = mutex.runAll(["a", "b"], async () => {
    done.push("all begun");
    await during.promise;
  });
  const after = mutex.run("a", async () => void done.push("a"));
  await settle();
  expect(done).toEqual([]);
  before.resolve();
  await settle();
  expect(done).toEqual(["all begun"]);
  during.resolve();
  await Promise.all([all, after]);
  expect(done).toEqual(["all begun", "a"]);
});

it("tasks with the same keys in another order do not deadlock", async () => {
  const mutex = new KeyedMutex<string>();
  const done: number[] = [];
  await Promise.all([
    mutex.runAll(["a", "b"], async () => void done.push(1)),
    mutex.runAll(["b", "a"], async () => void done.push(2)),
  ]);
  expect(done).toEqual([1, 2]);
});

it("releases its keys after a failure", async () => {
  const mutex = new KeyedMutex<string>();
  await expect(mutex.runAll(["a"], () => Promise.reject(new Error("no")))).rejects.toThrow("no");
  expect(await mutex.run("a", async () => "free")).toBe("free");
});
