import { toHexText } from "@stele/eth";
import type { Proof } from "@stele/wire";
import type { ProofResult } from "../broker.ts";

/** Converts a proof to the form of the public interface, which is canonical. */
export function toProof({ event, index, chain }: ProofResult): Proof {
  return {
    version: 1,
    registry: chain.registry,
    publisher: chain.publisher,
    event: {
      topic: event.topic,
      content: toHexText(event.content),
      extensions: event.extensions.map(([key, value]) => [key, value]),
      eventId: event.eventId,
    },
    batch: { index, path: chain.path.map(toHexText) },
    receipt: {
      transactionIndex: chain.transactionIndex,
      logPlace: chain.logPlace,
      nodes: chain.nodes.map(toHexText),
    },
    header: toHexText(chain.header),
  };
}
