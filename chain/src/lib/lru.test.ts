import { describe, expect, it } from "vitest";
import { Lru } from "./lru.ts";

describe("Lru", () => {
  it("Lru drops the least recently used entry once there are more than entriesMax", () => {
    const lru = new Lru<string, number>({ entriesMax: 2 });
    lru.set("a", 1);
    lru.set("b", 2);
    expect(lru.get("a")).toBe(1);
    lru.set("c", 3);
    expect(["a", "b", "c"].map((key) => lru.get(key))).toEqual([1, undefined, 3]);
  });

  it("Lru drops entries beyond weightMax, and counts neither replaced nor deleted entries", () => {
    const lru = new Lru<string, number>({ weightMax: 10 });
    lru.set("a", 1, 6);
    lru.set("a", 2, 4);
    lru.set("b", 3, 6);
    expect(["a", "b"].map((key) => lru.get(key))).toEqual([2, 3]);
    lru.delete("b");
    lru.set("c", 4, 6);
    lru.set("d", 5, 1);
    expect(["a", "b", "c", "d"].map((key) => lru.get(key))).toEqual([undefined, undefined, 4, 5]);
  });
});
