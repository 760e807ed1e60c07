import { BrokerError, type EventId, formatEventId, topicDigest } from "@stele/wire";
import type { Extensions } from "../../domain/event.ts";
import { toPosition } from "../../domain/position.ts";
import { parseTopicName } from "../../domain/topic-name.ts";
import type { Broker, EventResult } from "../../engine/broker.ts";
import { ProofMaker } from "../../ledger/evm/proof/proof-maker.ts";
import type { AnvilChain } from "../../ledger/evm/proof/testing/anvil-chain.ts";
import { addressOf, type Published } from "../../ledger/evm/proof/testing/prove.ts";

/** The broker's claims; a test adds, removes and changes them. */
export type Claims = Map<string, EventResult>;

export interface ClaimOptions {
  readonly chain: AnvilChain;
  readonly topic: string;
  readonly batches: readonly Published[];
}

/** Every event of these batches, as an honest broker has it. */
export function honestClaims({ topic, batches }: ClaimOptions): Claims {
  const claims: Claims = new Map();
  for (const batch of batches) {
    for (const [index, event] of batch.events.entries()) {
      const claim = toClaim(topic, { sequence: batch.firstSequence + index, blockNumber: batch.blockNumber }, event);
      claims.set(claim.eventId, claim);
    }
  }
  return claims;
}

export function toClaim(
  topic: string,
  { sequence, blockNumber }: { readonly sequence: number; readonly blockNumber: number },
  event: { readonly content: Uint8Array; readonly extensions: Extensions },
): EventResult {
  const eventId: EventId = formatEventId({ topicDigest: topicDigest(topic), sequence, blockNumber });
  const position = toPosition(blockNumber, 0);
  return { topic: parseTopicName(topic), sequence, blockNumber, position, ...event, eventId };
}

/** A broker with only these claims; it takes proofs from the chain. */
export function brokerOf(claims: Claims, { chain, topic, batches }: ClaimOptions): Partial<Broker> {
  const get = async (eventId: string): Promise<EventResult> => {
    const event = claims.get(eventId);
    if (event === undefined) throw new BrokerError("eventNotExist", { details: eventId });
    return event;
  };
  const all = [...claims.values()];
  return {
    getEvent: (_, { eventId }) => get(eventId),
    getProof: async (_, { eventId }) => {
      const event = await get(eventId);
      const batch = batches.findLast(({ firstSequence }) => firstSequence <= event.sequence);
      if (batch === undefined) throw new BrokerError("eventNotExist");
      const { firstSequence, blockNumber } = batch;
      const index = event.sequence - firstSequence;
      const place = { address: addressOf(chain.registry, topic), blockNumber, firstSequence, index };
      return { event, index, chain: await new ProofMaker(chain).make(place, AbortSignal.timeout(20_000)) };
    },
    state: async (_, call) => {
      if (call.topic !== topic) throw new BrokerError("topicNotExist");
      return {
        name: parseTopicName(topic),
        address: addressOf(chain.registry, topic),
        sender: `0x${"00".repeat(20)}`,
        createdTimestamp: 0,
        sequence: Math.max(0, ...all.map((event) => event.sequence)),
        blockNumber: Math.max(0, ...all.map((event) => event.blockNumber)),
        closed: false,
      };
    },
  };
}
