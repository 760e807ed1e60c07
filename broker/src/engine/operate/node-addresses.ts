import type { NodeId } from "../../domain/node.ts";
import type { Coordinator } from "../../ports/coordinator.ts";

/** The addresses of the nodes, by their ids; empty for a single node. */
export type NodeAddresses = ReadonlyMap<NodeId | undefined, string>;

/** Undefined for a single node. */
export type ListableNodes = { readonly coordinator: Pick<Coordinator, "listNodes"> } | undefined;

export async function findNodeAddresses(nodes: ListableNodes): Promise<NodeAddresses> {
  const listed = (await nodes?.coordinator.listNodes()) ?? [];
  return new Map(listed.map(({ id, address }) => [id, address]));
}
