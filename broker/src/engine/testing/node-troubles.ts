import type { TestCluster, TestNode } from "./test-cluster.ts";

export type NodeTrouble = "kill" | "launch" | "halt" | "resume" | "refuse" | "silence" | "heal";

/** What may happen to a node in a random history. Launches and heals come more often, so that most histories end with several nodes. */
export const nodeTroubles: readonly NodeTrouble[] = [
  "kill",
  "launch",
  "launch",
  "halt",
  "resume",
  "refuse",
  "silence",
  "heal",
  "heal",
];

/** Applies a trouble to a node, but never kills the last one. Returns the node; undefined if there was none, or if a kill was left out. */
export function applyTrouble(cluster: TestCluster, kind: NodeTrouble, at: number): TestNode | undefined {
  const found = cluster.find(at);
  if (found === undefined) {
    if (kind === "launch") cluster.launch(at);
    return undefined;
  }
  const { gate } = found;
  if (kind === "kill") {
    if (cluster.nodes.length === 1) return undefined;
    cluster.kill(at);
  } else if (kind === "halt") gate.halt();
  else if (kind === "resume") gate.resume();
  else if (kind === "refuse") gate.cut("refused");
  else if (kind === "silence") gate.cut("silent");
  else if (kind === "heal") gate.heal();
  return found;
}
