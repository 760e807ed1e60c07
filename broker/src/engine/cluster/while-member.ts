import type { NodeId } from "../../domain/node.ts";
import type { Member } from "./member.ts";

/** Runs once for each membership, with a signal that ends with it, until `signal` aborts or there will be no further membership. */
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
