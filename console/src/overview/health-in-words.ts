import type { Readiness } from "@stele/client";
import { formatCounted } from "../lib/format.ts";

export interface Health {
  readonly tone: "good" | "warning" | "bad";
  readonly sentence: string;
  /** Why, and what an operator should look at. */
  readonly reasons: readonly string[];
}

/** An index is mentioned if it is at least this many blocks behind. */
const blocksBehindMin = 3;

/** The readiness of the broker in plain words. */
export function describeHealth({ status, groups = [] }: Readiness): Health {
  const down = groups.filter(({ ready }) => !ready);
  const reasons = [
    ...down.map(({ groupId, reason }) => `Group ${groupId} cannot serve: ${reason ?? "the broker gives no reason"}.`),
    ...groups.flatMap(({ groupId, warning }) => (warning === undefined ? [] : [`Group ${groupId}: ${warning}.`])),
    ...groups.flatMap(({ groupId, headBlock, indexedBlock }) => {
      const behind = (headBlock ?? indexedBlock) - indexedBlock;
      return behind < blocksBehindMin
        ? []
        : [`The index of group ${groupId} is ${formatCounted(behind, "block")} behind.`];
    }),
  ];
  switch (status) {
    case "ready":
      return reasons.length === 0
        ? { tone: "good", sentence: "Ready: the broker takes and delivers events.", reasons }
        : { tone: "warning", sentence: "Ready, with a warning.", reasons };
    case "partly ready":
      return {
        tone: "warning",
        sentence: `Partly ready: ${countDown(down.length, groups.length)} cannot serve.`,
        reasons,
      };
    case "closing":
      return { tone: "warning", sentence: "Stopping: the broker takes no new connections.", reasons };
    case "not ready":
      return { tone: "bad", sentence: "Not ready: no group can serve.", reasons };
    default:
      return { tone: "warning", sentence: `The broker says: ${status}.`, reasons };
  }
}

/** With access control, the broker lists its groups only for admins. */
function countDown(down: number, groups: number): string {
  return groups === 0 ? "some groups" : `${down} of ${formatCounted(groups, "group")}`;
}
