import { setImmediate as turn } from "node:timers/promises";
import { beforeEach, describe, expect, it } from "vitest";
import { Semaphore } from "./semaphore.ts";

const { signal } = new AbortController();

describe("Semaphore", () => {
  let semaphore: Semaphore;
  let begun: string[];
  let ends: Map<string, (error?: Error) => void>;
  beforeEach(() => {
    semaphore = new Semaphore(2);
    begun = [];
    ends = new Map();
  });

  function enter(name: string, until: AbortSignal = signal): Promise<string | undefined> {
    const task = (): Promise<string> => {
      begun.push(name);
      return new Promise((resolve, reject) => {
        ends.set(name, (error) => (error === undefined ? resolve(name) : reject(error)));
      });
    };
    return semaphore.run(task, until);
  }

  async function end(name: string, error?: Error): Promise<void> {
    ends.get(name)?.(error);
    await turn();
  }

  it("runs two tasks at once, and starts the others in order", async () => {
    const all = ["a", "b", "c", "d", "e"].map((name) => enter(name));
    expect(begun).toEqual(["a", "b"]);
    await end("b");
    expect(begun).toEqual(["a", "b", "c"]);
    await end("a");
    expect(begun).toEqual(["a", "b", "c", "d"]);
    for (const name of ["c", "d", "e"]) await end(name);
    expect(await Promise.all(all)).toEqual(["a", "b", "c", "d", "e"]);
  });

  it("with isNewestFirst, starts the newest waiting task first, and no task that has given up", async () => {
    semaphore = new Semaphore(2, { isNewestFirst: true });
    const all = ["a", "b", "c", "d"].map((name) => enter(name));
    const left = Array.from({ length: 100 }, (_, index) => {
      const leaving = new AbortController();
      const waiting = enter(`left ${index}`, leaving.signal);
      leaving.abort();
      return waiting;
    });
    all.push(enter("e"));
    for (const name of ["a", "b", "e", "d", "c"]) await end(name);
    expect(begun).toEqual(["a", "b", "e", "d", "c"]);
    expect(await Promise.all(all)).toEqual(["a", "b", "c", "d", "e"]);
    expect(new Set(await Promise.all(left))).toEqual(new Set([undefined]));
  });

  it("with isNewestFirst, gives every fourth turn to the task that has waited longest, however many newer ones come", async () => {
    semaphore = new Semaphore(1, { isNewestFirst: true });
    const all = ["a", "old 1", "old 2"].map((name) => enter(name));
    const leaving = new AbortController();
    const left = enter("left", leaving.signal);
    all.push(enter("old 3"));
    leaving.abort();
    for (let number = 1; number <= 12; number += 1) {
      all.push(enter(`new ${number}`));
      await end(begun.at(-1) ?? "");
    }
    for (const name of ["old 3", "new 12", "new 8", "new 4"]) await end(name);
    const inTurns = [
      ["a", "new 1", "new 2", "new 3", "old 1"],
      ["new 5", "new 6", "new 7", "old 2"],
      ["new 9", "new 10", "new 11", "old 3"],
      ["new 12", "new 8", "new 4"],
    ];
    expect(begun).toEqual(inTurns.flat());
    expect(await Promise.all(all)).toHaveLength(16);
    expect(await left).toBeUndefined();
  });

  it("puts a caller that comes again behind the tasks that wait", async () => {
    void ["a", "b", "c"].map((name) => enter(name));
    const again = enter("a").then(() => enter("again"));
    for (const name of ["b", "a", "c", "a"]) await end(name);
    void again;
    expect(begun).toEqual(["a", "b", "c", "a", "again"]);
  });

  it("gives the slot of a failed task to the next task", async () => {
    const [failing] = [enter("a"), enter("b")];
    const waiting = enter("c");
    const failed = expect(failing).rejects.toThrow("lost");
    await end("a", new Error("lost"));
    await failed;
    await end("c");
    expect(await waiting).toBe("c");
  });

  it("never starts a task that is aborted before its turn, and starts the next one", async () => {
    const controller = new AbortController();
    void ["a", "b"].map((name) => enter(name));
    const aborted = enter("c", controller.signal);
    const next = enter("d");
    controller.abort();
    expect(await aborted).toBeUndefined();
    expect(await enter("e", controller.signal)).toBeUndefined();
    await end("a");
    await end("d");
    expect(await next).toBe("d");
    expect(begun).toEqual(["a", "b", "d"]);
  });

  it("lets many tasks wait with one signal, without a warning of Node.js", async () => {
    const warnings: Error[] = [];
    const note = (warning: Error): void => void warnings.push(warning);
    process.on("warning", note);
    const shared = new AbortController();
    const names = Array.from({ length: 20 }, (_, index) => String(index));
    const entered = names.map((name) => enter(name, shared.signal));
    await turn();
    process.off("warning", note);
    expect(warnings).toEqual([]);
    for (const name of names) await end(name);
    expect(await Promise.all(entered)).toEqual(names);
  });

  it("frees all slots when no caller waits", async () => {
    void ["a", "b", "c"].map((name) => enter(name));
    for (const name of ["a", "b", "c"]) await end(name);
    void ["d", "e", "f"].map((name) => enter(name));
    expect(begun).toEqual(["a", "b", "c", "d", "e"]);
  });
});
