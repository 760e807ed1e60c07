import { formatCounted } from "../lib/format.ts";
import type { MemberChange } from "./read-cluster.ts";

const verbs: Readonly<Record<string, string>> = {
  joined: "joined",
  left: "left",
  gone: "is gone: it did not renew its membership in time",
};

/** A change of the cluster in words. */
export function describeChange({ node, what, groupId, subscriptions, from }: MemberChange): string {
  if (what !== "took-over") return `${node} ${verbs[what] ?? what}`;
  const taken =
    groupId === undefined ? formatCounted(subscriptions ?? 0, "subscription") : `the index of group ${groupId}`;
  if (from === undefined) return `${node} took over ${taken}`;
  return `${node} took over ${taken} from ${from === node ? "its earlier membership" : from}`;
}
