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

  it("starts the newest of the waiting tasks first if told so, and none that has given up", async () => {
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

  it("puts a returning caller behind those that wait", async () => {
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
