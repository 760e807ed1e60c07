import { decodeEvents } from "@stele/wire";
import type { MemoryChain } from "../../ledger/memory/memory-chain.ts";

/** Contents on the chain, in order. */
export function contentsOnChain({ chain }: { readonly chain: MemoryChain }): readonly string[] {
  const entries = Array.from({ length: chain.head + 1 }, (_, number) => chain.find(number)?.entries ?? []).flat();
  const events = entries.flatMap((entry) => (entry.kind === "events-committed" ? decodeEvents(entry.events) : []));
  return events.map(({ content }) => new TextDecoder().decode(content));
}
