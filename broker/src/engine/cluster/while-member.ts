import type { Member, Membership } from "./member.ts";

/** Calls `run` for each membership, with a signal that aborts when the membership ends or `signal` aborts. Returns once `signal` has aborted. */
export async function whileMember(
  member: Member,
  signal: AbortSignal,
  run: (membership: Membership, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  while (!signal.aborted) {
    const membership = await member.membership(signal);
    if (membership === undefined) return;
    await run(membership, AbortSignal.any([signal, membership.ended]));
  }
}
