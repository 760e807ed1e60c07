import { expect, it } from "vitest";
import { findFirstTrue } from "./first-true.ts";

it("finds the first index for which the test holds, among 0 to 40 indexes, and a small index with few calls", async () => {
  for (let count = 0; count <= 40; count += 1) {
    for (let first = 0; first <= count; first += 1) {
      let questions = 0;
      const found = await findFirstTrue(count, async (place) => {
        questions += 1;
        expect(place).toBeLessThan(count);
        return place >= first;
      });
      expect(found).toBe(first);
      expect(questions).toBeLessThanOrEqual(2 * Math.ceil(Math.log2(first + 2)));
    }
  }
});
