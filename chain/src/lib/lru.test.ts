import { describe, expect, it } from "vitest";
import { Lru } from "./lru.ts";

describe("Lru", () => {
  it("drops the entry that was used least recently beyond a number of entries", () => {
    const lru = new Lru<string, number>({ entriesMax: 2 });
    lru.set("a", 1);
    lru.set("b", 2);
    expect(lru.get("a")).toBe(1);
    lru.set("c", 3);
    expect([...lru.keys()]).toEqual(["a", "c"]);
  });

  it("drops entries beyond a weight, and counts only those that it has", () => {
    const lru = new Lru<string, number>({ weightMax: 10 });
    lru.set("a", 1, 6);
    lru.set("a", 2, 4);
    lru.set("b", 3, 6);
    expect([...lru.keys()]).toEqual(["a", "b"]);
    lru.delete("b");
    lru.set("c", 4, 6);
    lru.set("d", 5, 1);
    expect([...lru.keys()]).toEqual(["c", "d"]);
  });
});
