import { positionZero } from "../domain/position.ts";
import type { SessionClaim, SessionWithFilters, StoredSession } from "./session-store.ts";

/** The session that a claim begins. */
export function toNewSession(claim: SessionClaim): StoredSession {
  const { groupId, protocol, key, newId: id, newEpoch: epoch, position, now: createdAt, owner } = claim;
  const { principal, will, willDelayMs, expiryMs } = claim;
  const state = { cursor: position, taken: position, outside: positionZero, inFlight: new Uint8Array() };
  const end = { principal, will, willDelayMs, expiryMs, detachedAt: undefined, willDueAt: undefined };
  return { groupId, protocol, key, id, epoch, ...state, ...end, owner, createdAt };
}

/** Whether a claim continues a session of its name that has not ended. */
export function mayResume({ isClean, isStream }: SessionClaim, { filters }: SessionWithFilters): boolean {
  return !isClean && (!isStream || filters.length > 0);
}

const willKeyPrefix = "will ";

/** The key of the session whose will the row with this key keeps (see {@link toDueWill}). Returns any other key unchanged. */
export function keyOfClaim(key: string): string {
  return key.startsWith(willKeyPrefix) ? key.slice(willKeyPrefix.length) : key;
}

/**
 * When a claim takes a session, the former connection's will may be due. This returns a row that keeps the will, so that no failure loses it. The row is an
 * expired session that the claim's owner has taken. The row's key depends only on the session's name, so a client that connects again and again leaves one row
 * at most. Returns undefined if no will is due: there is no will; or the session continues, and the will's delay has not passed ([MQTT-3.1.3-9]); or an earlier
 * try of this claim, whose answer was lost, began `former`. `time` is the session time.
 */
export function toDueWill(
  claim: SessionClaim,
  former: StoredSession,
  { time, isResumed }: { readonly time: number; readonly isResumed: boolean },
): StoredSession | undefined {
  const { will, willDelayMs, willDueAt = Number.POSITIVE_INFINITY, principal } = former;
  const isDue = !isResumed || willDelayMs === 0 || willDueAt <= time;
  if (will === undefined || !isDue || former.id === claim.newId) return undefined;
  const name = { newId: claim.willId, newEpoch: 0, key: willKeyPrefix + claim.key, position: positionZero };
  const end = { principal, will, willDelayMs: 0, expiryMs: 0 };
  return { ...toNewSession({ ...claim, ...name, ...end }), detachedAt: time, willDueAt: time };
}
