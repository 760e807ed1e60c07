import { createReadStream } from "node:fs";
import { findBytes, toHexText } from "@stele/eth";
import { keccak256 } from "@stele/eth/node";
import { type Proof, type ProofResult, type ProvenEvent, parseEventId, parseProof, verifyProof } from "@stele/wire";
import type { EventArguments } from "./arguments.ts";
import { BrokerClient } from "./broker-client.ts";
import { ChainClient } from "./chain-client.ts";
import { collectText } from "./collect-text.ts";
import type { PinnedBy, RegistryPin } from "./registry-pin.ts";
import { confirmSameChain } from "./confirm-same-chain.ts";
import { AnswerTooLong, Unverifiable } from "./unverifiable.ts";

/** Result of the verification. `blockHashFrom` names the source of the block hash; undefined if it was the user. */
export type EventReport =
  | {
      readonly status: "verified";
      readonly event: ProvenEvent;
      readonly blockHash: string;
      readonly blockHashFrom: string | undefined;
      readonly pinnedBy: PinnedBy;
    }
  | { readonly status: "refuted"; readonly step: string; readonly reason: string };

const eventIdPattern = /^[0-9a-f]{8}-\d+-\d+$/;

/** Verifies the proof of one event, from the broker or a file. @throws Unverifiable, RpcFailure. */
export async function verifyEvent(options: EventArguments, pin: RegistryPin): Promise<EventReport> {
  const isFile = !eventIdPattern.test(options.eventIdOrFile);
  const read = isFile ? await readProof(options.eventIdOrFile) : await askForProof(options);
  if ("reason" in read) return { status: "refuted", step: "form", reason: read.reason };
  const { proof } = read;
  const chain = new ChainClient(options);
  if (options.blockHash !== undefined) {
    return toReport(check(proof, options.blockHash, options), { blockHash: options.blockHash, chain, pin });
  }
  const blockNumber = findBlockNumber(proof);
  if (blockNumber === undefined) return { status: "refuted", step: "event", reason: "its eventId is malformed" };
  const isSameForSure = !isFile && (await confirmSameChain(chain, new BrokerClient(options)));
  const blockHash = await chain.blockHash(blockNumber);
  const ownHash = headerHash(proof);
  // If the node may serve another chain, only the proof's own content can refute the proof.
  const isOther = !isSameForSure && ownHash !== undefined && ownHash !== blockHash;
  const result = check(proof, isOther ? ownHash : blockHash, options);
  if (isOther && result.status === "verified") throw otherBlock(chain, { blockNumber, blockHash, ownHash });
  return toReport(result, { blockHash, blockHashFrom: chain.url, chain, pin });
}

function check(proof: Proof, blockHash: string, { registry, publishers }: EventArguments): ProofResult {
  return verifyProof(proof, blockHash, {
    ...(registry === undefined ? {} : { expectedRegistry: registry }),
    ...(publishers === undefined ? {} : { expectedPublishers: publishers }),
    keccak: keccak256,
  });
}

interface Verified {
  readonly blockHash: string;
  readonly blockHashFrom?: string;
  readonly chain: ChainClient;
  readonly pin: RegistryPin;
}

async function toReport(result: ProofResult, of: Verified): Promise<EventReport> {
  if (result.status === "refuted") return result;
  const { blockHash, blockHashFrom, chain, pin } = of;
  return { ...result, blockHash, blockHashFrom, pinnedBy: await pin.check(result.event.registry, chain) };
}

/** The hash of the proof's own block header; undefined if the header is not in hexadecimal. */
function headerHash({ header }: Proof): string | undefined {
  const bytes = findBytes(header);
  return bytes === undefined ? undefined : toHexText(keccak256(bytes));
}

function otherBlock(
  chain: ChainClient,
  { blockNumber, blockHash, ownHash }: { blockNumber: number; blockHash: string; ownHash: string },
): Unverifiable {
  return new Unverifiable(
    `block ${blockNumber} of ${chain.name} has the hash ${blockHash}, but the proof's block has ${ownHash}: another chain, or a reorg; pass --rpc of a node of the event's chain`,
  );
}

type ReadProof = { readonly proof: Proof } | { readonly reason: string };

async function askForProof(options: EventArguments): Promise<ReadProof> {
  const proof = await new BrokerClient(options).getProof(options.eventIdOrFile);
  if (proof.event.eventId === options.eventIdOrFile) return { proof };
  return { reason: `the broker returned a proof of ${proof.event.eventId} instead` };
}

async function readProof(path: string): Promise<ReadProof> {
  const parsed = parseProof(await readText(path));
  return parsed.status === "proof" ? parsed : { reason: parsed.reason };
}

async function readText(path: string): Promise<string> {
  try {
    return await collectText(createReadStream(path), { name: "the file" });
  } catch (error) {
    if (error instanceof AnswerTooLong) throw error;
    throw new Unverifiable("this is not an eventId, and not a readable file", error);
  }
}

/** The number of the block in the proof's eventId; undefined if the eventId is malformed. */
function findBlockNumber({ event }: Proof): number | undefined {
  try {
    return parseEventId(event.eventId).blockNumber;
  } catch {
    return undefined;
  }
}
