import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { startProgress } from "./progress.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function stream(isTTY: boolean) {
  const written: string[] = [];
  return { isTTY, written, write: (text: string) => void written.push(text) };
}

it("shows each second on a terminal how long a command has run, and removes the line when the command ends", () => {
  const terminal = stream(true);
  const progress = startProgress(terminal, "stele backup");
  vi.advanceTimersByTime(999);
  expect(terminal.written).toEqual([]);
  vi.advanceTimersByTime(1_001);
  progress[Symbol.dispose]();
  vi.advanceTimersByTime(5_000);
  const clear = "\r\u{1b}[K";
  expect(terminal.written).toEqual([`${clear}stele backup: 1 s`, `${clear}stele backup: 2 s`, clear]);
});

it("writes nothing if the stream is not a terminal, or if the command ends within a second", () => {
  const file = stream(false);
  using _ofFile = startProgress(file, "stele backup");
  const terminal = stream(true);
  startProgress(terminal, "stele backup")[Symbol.dispose]();
  vi.advanceTimersByTime(5_000);
  expect([...file.written, ...terminal.written]).toEqual([]);
});
