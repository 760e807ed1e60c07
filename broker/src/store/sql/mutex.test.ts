import { expect, it } from "vitest";
import { Mutex, type Speed, TwoSpeedMutex } from "./mutex.ts";

/** Runs the named callers, which come in this order while a `first` one holds the mutex; `onTurn` may let more come. Returns the order of the turns. */
async function runAll(
  first: Speed,
  callers: readonly string[],
  onTurn: (name: string, come: (name: string) => void) => void = () => {},
) {
  const mutex = new TwoSpeedMutex();
  const turns: string[] = [];
  const tasks: Promise<void>[] = [];
  const run = async (name: string): Promise<void> => {
    await mutex.acquire(name.startsWith("quick") ? "quick" : "slow");
    turns.push(name);
    onTurn(name, come);
    mutex.release();
  };
  const come = (name: string): void => void tasks.push(run(name));
  await mutex.acquire(first);
  for (const name of callers) come(name);
  mutex.release();
  for (const task of tasks) await task;
  await mutex.acquire("slow"); // Returns only if the mutex is free again.
  return turns;
}

it("lets quick callers wait for one slow caller at most, in the order of their arrival", async () => {
  const callers = ["slow 1", "slow 2", "slow 3", "quick 1", "quick 2"];
  expect(await runAll("slow", callers)).toEqual(["quick 1", "quick 2", "slow 1", "slow 2", "slow 3"]);
  expect(await runAll("quick", callers)).toEqual(["slow 1", "quick 1", "quick 2", "slow 2", "slow 3"]);
});

it("lets slow callers have their turn while quick ones keep coming", async () => {
  let count = 0;
  const turns = await runAll("slow", ["slow 1", "slow 2", "quick"], (name, come) => {
    if (name.startsWith("quick") && count < 6) come(`quick ${(count += 1)}`);
  });
  expect(turns.slice(0, 5)).toEqual(["quick", "slow 1", "quick 1", "slow 2", "quick 2"]);
  expect(turns).toHaveLength(9);
});

// If the queue were an array, each turn would move all waiting callers, which takes more than half a minute in total.
it("gives 200,000 waiting callers their turns within 20 s", { timeout: 20_000 }, async () => {
  const mutexes = [new Mutex(), new TwoSpeedMutex()];
  for (const mutex of mutexes) {
    await mutex.acquire("slow");
    const turns = Array.from({ length: 200_000 }, async () => {
      await mutex.acquire("slow");
      mutex.release();
    });
    mutex.release();
    await Promise.all(turns);
  }
});
