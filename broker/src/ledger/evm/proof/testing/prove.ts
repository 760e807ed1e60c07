import { findBytes, type Hex, toHexText } from "@stele/eth";
import { formatEventId, type Proof, topicAddress, topicDigest } from "@stele/wire";
import type { EventPayload } from "../../../../domain/event.ts";
import { toPosition } from "../../../../domain/position.ts";
import type { Address } from "../../../../domain/topic.ts";
import { parseTopicName } from "../../../../domain/topic-name.ts";
import { toProof } from "../../../../engine/query/to-proof.ts";
import type { EvmProvider } from "../../endpoint/rpc.ts";
import { ProofMaker } from "../proof-maker.ts";

/** A batch that is on the chain. */
export interface Published {
  readonly topic: string;
  readonly firstSequence: number;
  readonly blockNumber: number;
  readonly events: readonly EventPayload[];
}

/** The address of a topic. */
export function addressOf(registry: Address, name: string): Address {
  return toHexText(topicAddress({ registry: findBytes(registry) ?? new Uint8Array(), name }));
}

/** The proof of one event of a batch, as the API returns it. */
export async function prove(
  chain: { readonly provider: EvmProvider; readonly registry: Address },
  batch: Published,
  index: number,
): Promise<Proof> {
  const { topic, firstSequence, blockNumber, events } = batch;
  const payload = events[index];
  if (payload === undefined) throw new Error(`no event ${index}`);
  const address = addressOf(chain.registry, topic);
  const made = await new ProofMaker(chain).make(
    { address, blockNumber, firstSequence, index },
    AbortSignal.timeout(20_000),
  );
  const sequence = firstSequence + index;
  const event = {
    ...payload,
    topic: parseTopicName(topic),
    sequence,
    blockNumber,
    position: toPosition(blockNumber, 0),
    eventId: formatEventId({ topicDigest: topicDigest(topic), sequence, blockNumber }),
  };
  return toProof({ event, index, chain: made });
}

/** The hash of a block, from a chain node that the test trusts. */
export async function blockHash(provider: EvmProvider, blockNumber: number): Promise<Hex> {
  const params = [`0x${blockNumber.toString(16)}`, false];
  const block = (await provider.request({ method: "eth_getBlockByNumber", params })) as { hash: Hex }; // A block.
  return block.hash;
}
