import { findBytes, toHexText } from "@stele/eth";
import { topicAddress } from "@stele/wire";
import type { Address } from "../domain/topic.ts";
import type { TopicName } from "../domain/topic-name.ts";
import type { TopicArguments } from "./arguments.ts";
import { BrokerClient } from "./broker-client.ts";
import { readBatches } from "./chain-batches.ts";
import { ChainClient } from "./chain-client.ts";
import { Comparison, type Difference, type MalformedBatch } from "./comparison.ts";
import type { PinnedBy, RegistryPin } from "./registry-pin.ts";
import { confirmSameChain } from "./confirm-same-chain.ts";
import { Unverifiable } from "./unverifiable.ts";

/** Result of the comparison. Keeps the first differences and malformed batches, and counts all. */
export interface TopicReport {
  readonly status: "verified" | "refuted";
  readonly topic: TopicName;
  readonly topicAddress: Address;
  readonly registry: Address;
  readonly pinnedBy: PinnedBy;
  readonly from: number;
  readonly to: number;
  /** The topic's newest sequence on the chain. */
  readonly onChain: number;
  readonly batches: number;
  readonly events: number;
  readonly malformed: readonly MalformedBatch[];
  readonly malformedBatches: number;
  readonly differences: readonly Difference[];
  readonly counts: Readonly<Record<Difference["kind"], number>>;
  /** URL of the node that was asked. */
  readonly chain: string;
}

/** Compares a topic's events on the chain with the broker's. @throws Unverifiable, RpcFailure. */
export async function verifyTopic(options: TopicArguments, pin: RegistryPin): Promise<TopicReport> {
  const broker = new BrokerClient(options);
  const chain = new ChainClient(options);
  const state = await broker.findTopic(options.topic);
  await confirmSameChain(chain, broker);
  const { address, registry } = await locate(chain, options, state?.topicAddress);
  const pinnedBy = await pin.check(registry, chain);
  const headBefore = await chain.blockNumber();
  const contract = await chain.findTopic(address);
  if (contract === undefined) throw new Unverifiable(`the node at ${chain.url} has no topic contract at ${address}`);
  const onChain = contract.sequence;
  const to = options.to ?? onChain;
  const last = Math.max(onChain, state?.sequenceNumber ?? 0);
  if (to > last || options.from > to + 1)
    throw new Unverifiable(`the topic has no event after ${last}: use a smaller --from or --to`);
  const { topic, from, publishers } = options;
  const comparison = new Comparison(broker, { topic, from, to, publishers, readUpTo: state?.blockNumber ?? -1 });
  // Not below the block whose state has `onChain` events: a busy topic gets some after `headBefore`.
  const head = Math.max(headBefore, await chain.blockNumber());
  let read = 0;
  for await (const batch of readBatches(chain, { address, registry, fromBlock: options.fromBlock, head })) {
    await comparison.take(batch);
    read = batch.firstSequence + batch.count - 1;
    if (read >= to) break;
  }
  if (read < Math.min(to, onChain)) {
    throw new Unverifiable(
      `the node returned events up to sequence ${read}, but the contract has ${onChain}; ask another node`,
    );
  }
  if (state !== undefined) comparison.finish(state, { onChain, head: headBefore });
  comparison.expectAllRead();
  return {
    status: comparison.total === 0 ? "verified" : "refuted",
    topic: options.topic,
    topicAddress: address,
    registry,
    pinnedBy,
    from: options.from,
    to,
    onChain,
    batches: comparison.batches,
    events: comparison.events,
    malformed: comparison.malformed,
    malformedBatches: comparison.malformedBatches,
    differences: comparison.differences,
    counts: comparison.counts,
    chain: chain.url,
  };
}

interface Located {
  readonly address: Address;
  readonly registry: Address;
}

/**
 * The topic's address, computed from the trusted registry. Without a trusted registry, computes the address from the registry that the contract
 * at the address `claimed` names; the result must equal `claimed`.
 */
async function locate(chain: ChainClient, options: TopicArguments, claimed: string | undefined): Promise<Located> {
  const { topic } = options;
  if (options.registry !== undefined) return toLocated(options.registry as Address, topic); // Its form is already checked.
  if (claimed === undefined)
    throw new Unverifiable(`the broker has no topic ${topic}; pass --registry to look for it on the chain`);
  const contract = await chain.findTopic(claimed as Address); // The form of the answer is already checked.
  const located = contract === undefined ? undefined : toLocated(contract.registry, topic);
  if (located?.address === claimed) return located;
  throw new Unverifiable(`the chain has no topic ${topic} at ${claimed}, the address from the broker; pass --registry`);
}

function toLocated(registry: Address, name: TopicName): Located {
  const bytes = findBytes(registry) ?? new Uint8Array();
  return { registry, address: toHexText(topicAddress({ registry: bytes, name })) };
}
