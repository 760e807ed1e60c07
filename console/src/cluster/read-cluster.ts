import type { Stele } from "@stele/client";
import { take } from "../lib/take.ts";

type Item<List> = List extends AsyncGenerator<infer One> ? One : never;
type Admin = Stele["admin"];
export type Group = Item<ReturnType<Admin["groups"]>>;
export type Node = Item<ReturnType<Admin["nodes"]>>;
export type MemberChange = Awaited<ReturnType<Admin["nodeHistory"]>>[number];

export interface Cluster {
  readonly groups: readonly Group[];
  readonly nodes: readonly Node[];
  /** Changes that the answering node has seen, newest first. */
  readonly history: readonly MemberChange[];
}

/** Maximum number of rows of a table. */
const rowsMax = 200;

export async function readCluster({ admin }: Stele, signal: AbortSignal): Promise<Cluster> {
  const [groups, nodes, history] = await Promise.all([
    take(admin.groups({ signal }), rowsMax),
    take(admin.nodes({ signal }), rowsMax),
    admin.nodeHistory({ signal }),
  ]);
  return { groups: groups.items, nodes: nodes.items, history };
}
