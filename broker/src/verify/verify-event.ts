import { readFile } from "node:fs/promises";
import { parseEventId, parseProof, type Proof, type ProvenEvent, verifyProof } from "@stele/wire";
import { keccak256 } from "../ledger/evm/native-crypto.ts";
import type { EventArguments } from "./arguments.ts";
import { BrokerClient } from "./broker-client.ts";
import { ChainClient } from "./chain-client.ts";
import { Unverifiable } from "./unverifiable.ts";

/** What came of it. `blockHashFrom` is who said which block to trust, undefined when the user did. */
export type EventReport =
  | {
      readonly status: "verified";
      readonly event: ProvenEvent;
      readonly blockHash: string;
      readonly blockHashFrom: string | undefined;
    }
  | { readonly status: "refuted"; readonly step: string; readonly reason: string };

const eventIdPattern = /^[0-9a-f]{8}-\d+-\d+$/;

/** Verifies the proof of one event, which the broker gives or a file holds. @throws Unverifiable. */
export async function verifyEvent(options: EventArguments): Promise<EventReport> {
  const read = eventIdPattern.test(options.what) ? await askForProof(options) : await readProof(options.what);
  if ("reason" in read) return { status: "refuted", step: "form", reason: read.reason };
  const chain = new ChainClient(options);
  const blockHash = options.blockHash ?? (await trustedHash(read.proof, chain));
  if (blockHash === undefined) return { status: "refuted", step: "event", reason: "its eventId is none" };
  const given = options.registry === undefined ? {} : { expectedRegistry: options.registry };
  const result = verifyProof(read.proof, blockHash, { ...given, keccak: keccak256 });
  if (result.status === "refuted") return result;
  const blockHashFrom = options.blockHash === undefined ? chain.url : undefined;
  return { status: "verified", event: result.event, blockHash, blockHashFrom };
}

type ReadProof = { readonly proof: Proof } | { readonly reason: string };

async function askForProof(options: EventArguments): Promise<ReadProof> {
  const proof = await new BrokerClient(options).getProof(options.what);
  if (proof.event.eventId === options.what) return { proof };
  return { reason: `the broker gave a proof of ${proof.event.eventId} in its place` };
}

async function readProof(path: string): Promise<ReadProof> {
  const parsed = parseProof(await readText(path));
  return parsed.status === "proof" ? parsed : { reason: parsed.reason };
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw new Unverifiable("this is no eventId, and cannot be read as a file", error);
  }
}

/** The hash of the block that the proof names; undefined when it names none. */
async function trustedHash(proof: Proof, chain: ChainClient): Promise<string | undefined> {
  const blockNumber = findBlockNumber(proof);
  return blockNumber === undefined ? undefined : chain.blockHash(blockNumber);
}

function findBlockNumber({ event }: Proof): number | undefined {
  try {
    return parseEventId(event.eventId).blockNumber;
  } catch {
    return undefined;
  }
}
