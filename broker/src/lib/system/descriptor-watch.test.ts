import { expect, it } from "vitest";
import { silentLogger } from "../logger.ts";
import { DescriptorWatch } from "./descriptor-watch.ts";

/** A clock that runs its one timer when it is advanced. */
function createClock() {
  let now = 0;
  let due: { readonly at: number; readonly action: () => void } | undefined;
  return {
    monotonic: () => now,
    after: (delayMs: number, action: () => void) => {
      due = { at: now + delayMs, action };
      return () => void (due = undefined);
    },
    advance: (ms: number) => {
      const until = now + ms;
      for (let next = due; next !== undefined && next.at <= until; next = due) {
        now = next.at;
        next.action();
      }
      now = until;
    },
  };
}

it("reports a shortage while it lasts, warns for a minute afterwards, and logs its start and its end once each", () => {
  const clock = createClock();
  const lines: string[] = [];
  const note = (message: string): void => void lines.push(message);
  let code: string | undefined;
  const probe = (): void => {
    if (code !== undefined) throw Object.assign(new Error("open"), { code });
  };
  const watch = new DescriptorWatch({ clock, probe, logger: { ...silentLogger, info: note, error: note } });
  watch.start();
  expect(watch.trouble).toEqual({ reason: undefined, warning: undefined });
  code = "EMFILE";
  clock.advance(3_000);
  expect(watch.trouble).toMatchObject({ reason: expect.stringContaining("raise the limit"), warning: undefined });
  code = undefined;
  clock.advance(1_000);
  expect(watch.trouble).toMatchObject({
    reason: undefined,
    warning: expect.stringContaining("had no file descriptor"),
  });
  clock.advance(60_000);
  expect(watch.trouble).toEqual({ reason: undefined, warning: undefined });
  code = "EACCES";
  clock.advance(1_000);
  expect(watch.trouble.reason).toBeUndefined();
  watch.stop();
  expect(lines).toEqual(["no file descriptor left: connections are refused", "file descriptors available again"]);
});
