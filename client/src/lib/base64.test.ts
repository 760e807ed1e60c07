import { expect, it } from "vitest";
import { fromBase64, toBase64 } from "./base64.ts";

const contentBytesMax = 8 * 1024 * 1024;

it.each([0, 1, 2, 3, 8191, 8192, 8193, 100_000])("encodes %i bytes as Node.js does, and decodes them", (length) => {
  const bytes = Uint8Array.from({ length }, (_, index) => (index * 31) % 256);
  const text = toBase64(bytes);
  expect(text).toBe(Buffer.from(bytes).toString("base64"));
  expect(Buffer.compare(fromBase64(text), bytes)).toBe(0);
});

it("the longest content takes at most 20 times as long as atob and btoa of its characters", () => {
  const bytes = new Uint8Array(contentBytesMax).fill(0xa5);
  const text = Buffer.from(bytes).toString("base64");
  const binary = atob(text);
  expect(timeOf(() => fromBase64(text))).toBeLessThan(20 * timeOf(() => atob(text))); // An iterator over the characters takes 200 times as long.
  expect(timeOf(() => toBase64(bytes))).toBeLessThan(20 * timeOf(() => btoa(binary)));
});

/** The processor time of several runs together, in microseconds. With a coarse clock, one run may take 0. */
function timeOf(run: () => unknown): number {
  const start = process.cpuUsage();
  for (let count = 0; count < 5; count += 1) run();
  const { user, system } = process.cpuUsage(start);
  return user + system;
}
