import { expect, it } from "vitest";
import { ownPiece } from "./own-piece.ts";

it("keeps no more memory than the bytes need", () => {
  const shared = Buffer.from("a short buffer, which Node.js puts into a page");
  expect(shared.buffer.byteLength).toBeGreaterThan(shared.length);
  const own = ownPiece(shared);
  expect(own).toEqual(new Uint8Array(shared));
  expect(own.buffer.byteLength).toBe(own.length);
  expect(ownPiece(own)).toBe(own);
});
