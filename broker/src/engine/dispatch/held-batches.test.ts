import { expect, it } from "vitest";
import { HeldBatches } from "./held-batches.ts";

/** Readers that hold bytes, and the names of those that had to let go of theirs. */
function createReaders(bytesMax: number) {
  const held = new HeldBatches(bytesMax);
  const letGo: string[] = [];
  const readers = new Map<string, { letGo(): void }>();
  const hold = (name: string, bytes: number): void => {
    const reader = readers.get(name) ?? { letGo: () => void letGo.push(name) };
    readers.set(name, reader);
    held.hold(reader, bytes);
  };
  return { hold, letGo };
}

it("the readers that have not moved for longest let go first, and only as many as needed", () => {
  const { hold, letGo } = createReaders(100);
  hold("a", 40);
  hold("b", 40);
  hold("a", 40);
  hold("c", 40);
  expect(letGo).toEqual(["b"]);
  hold("b", 60);
  expect(letGo).toEqual(["b", "a"]);
});

it("a reader that no longer holds bytes does not count towards bytesMax", () => {
  const { hold, letGo } = createReaders(100);
  hold("a", 60);
  hold("a", 0);
  hold("b", 100);
  expect(letGo).toEqual([]);
});

it("a reader that holds more than bytesMax keeps its batches, and all others let go", () => {
  const { hold, letGo } = createReaders(100);
  hold("a", 1);
  hold("b", 1_000);
  expect(letGo).toEqual(["a"]);
  hold("b", 10);
  hold("a", 10);
  expect(letGo).toEqual(["a"]);
});
