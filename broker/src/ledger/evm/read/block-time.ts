import type { Header } from "../endpoint/rpc.ts";

/** How far the newest block's time may be ahead of the clock without a warning, in milliseconds. Chains allow 15 s. */
const aheadMsMax = 60_000;

/** A warning if the newest block is dated too far after `now`; undefined otherwise. Later blocks cannot be dated earlier. */
export function blockTimeWarning({ number, timestamp }: Header, now: number): string | undefined {
  const aheadMs = timestamp - now;
  if (aheadMs <= aheadMsMax) return undefined;
  const seconds = Math.round(aheadMs / 1_000);
  return `block ${number} is dated ${new Date(timestamp).toISOString()}, ${seconds} s ahead of this machine's clock: events get that time until the clock has caught up; check the clock`;
}
