import type { NodeId } from "../../domain/node.ts";
import type { Member } from "./member.ts";

/** Calls `run` for each membership, with a signal that aborts when the membership ends or `signal` aborts. Returns once `signal` has aborted. */
export async function whileMember(
  member: Member,
  signal: AbortSignal,
  run: (nodeId: NodeId, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  while (!signal.aborted) {
    const membership = await member.membership(signal);
    if (membership === undefined) return;
    await run(membership.nodeId, AbortSignal.any([signal, membership.ended]));
  }
}
