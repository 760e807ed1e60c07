import type { GroupId } from "../domain/group-id.ts";
import { joinTexts } from "../lib/join-texts.ts";
import type { GroupHealth } from "./broker.ts";
import type { GroupLife } from "./group-life.ts";
import type { DeliveryLag } from "./operate/delivery-lag.ts";
import type { HeldSubscriptions } from "./operate/held-subscriptions.ts";

export interface GaugeSources {
  readonly held: Pick<HeldSubscriptions, "of">;
  readonly lag: Pick<DeliveryLag, "of">;
  /** Why this node is not a member of its cluster; undefined if it is, or if it is a single node. */
  readonly failure: string | undefined;
}

/** The health of each group without most warnings. Does not look at sessions or subscriptions: metrics and the log ask several times a second. */
export function gaugesOf(
  lives: readonly Pick<GroupLife, "groupId" | "health">[],
  { held, lag, failure }: GaugeSources,
): readonly GroupHealth[] {
  return lives.map((life) => {
    const health = { ...life.health(), held: held.of(life.groupId), lag: lag.of(life.groupId) };
    return failure === undefined ? health : { ...health, ready: false, reason: health.reason ?? failure };
  });
}

interface Warner {
  findWarning(): string | undefined;
}

interface GroupWarner {
  findWarning(groupId: GroupId): string | undefined;
}

export interface WarningSources {
  readonly isPaused: boolean;
  readonly held: GroupWarner;
  /** The parts that warn of a condition of the whole node: callbacks first, then access. */
  readonly ofNode: readonly (Warner | undefined)[];
  readonly sessions: GroupWarner;
}

/** Adds every warning to a group's health. */
export function withWarnings(health: GroupHealth, { isPaused, held, ofNode, sessions }: WarningSources): GroupHealth {
  const groupId = health.groupId as GroupId; // Of a group that this broker serves.
  const paused = isPaused ? "deliveries are paused at this node: no callback is attempted" : undefined;
  const own = ofNode.map((source) => source?.findWarning());
  const all = [paused, held.findWarning(groupId), ...own, sessions.findWarning(groupId), health.warning];
  return { ...health, warning: joinTexts(all) };
}
