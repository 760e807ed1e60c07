import { topicRegistryAbi } from "@stele/contracts";
import { toEventSelector } from "viem";
import type { Address, Hash } from "../../domain/topic.ts";
import type { BatchOutcome } from "../../ports/ledger.ts";
import { fromHex, type Hex } from "./hex.ts";
import type { RpcLog } from "./rpc.ts";

type Rejection = Extract<BatchOutcome, { status: "rejected" }>["reason"];

interface LogPlace {
  readonly blockNumber: number;
  readonly blockHash: Hash;
  readonly transactionHash: Hash;
  readonly logIndex: number;
  /** The topic that it is about. */
  readonly address: Address;
}

/** A log of the registry that we read. Of `events-published` the events are not checked yet. */
export type ContractLog = LogPlace &
  (
    | { readonly kind: "topic-opened"; readonly name: string; readonly sender: Address }
    | { readonly kind: "topic-closed" | "topic-reopened" | "open-rejected" }
    | { readonly kind: "batch-rejected"; readonly reason: Rejection }
    | {
        readonly kind: "events-published";
        readonly firstSequence: number;
        /** Who called the registry. */
        readonly sender: Address;
        readonly count: number;
        readonly eventsRoot: Hex;
        readonly events: Buffer;
      }
  );

const signatureOf = (name: string): Hex => {
  const item = topicRegistryAbi.find((candidate) => candidate.type === "event" && candidate.name === name);
  if (item?.type !== "event") throw new Error(`the registry's interface lacks ${name}`);
  return toEventSelector(item);
};

const opened = signatureOf("TopicOpened");
const reopened = signatureOf("TopicReopened");
const closed = signatureOf("TopicClosed");
const refused = signatureOf("OpenRejected");
const rejected = signatureOf("BatchRejected");
/** First topic of the log of a batch. */
export const publishedSignature = signatureOf("EventsPublished");

/** Logs that change what is known of a topic. */
export const changeSignatures: readonly Hex[] = [opened, reopened, closed, publishedSignature];
/** Logs that say that nothing was changed, for whoever asked for it. */
export const refusalSignatures: readonly Hex[] = [refused, rejected];
/** First topics of all logs that we read. */
export const logSignatures: readonly Hex[] = [...changeSignatures, ...refusalSignatures];

const rejections: readonly (Rejection | undefined)[] = [
  undefined,
  "unknown-topic",
  "closed-topic",
  "empty-batch",
  "count-too-large",
  "not-a-writer",
];
const word = 32;

/** Reads a log of the registry; undefined for a log that another contract wrote, or of another kind. */
export function parseLog(log: RpcLog, registry: Address): ContractLog | undefined {
  const [signature, topic] = log.topics;
  if (log.address.toLowerCase() !== registry || topic === undefined) return undefined;
  const place = placeOf(log, addressIn(topic));
  if (signature === publishedSignature) return { ...place, ...parsePublished(log) };
  if (signature === opened) return { ...place, ...parseOpened(log) };
  if (signature === reopened) return { ...place, kind: "topic-reopened" };
  if (signature === closed) return { ...place, kind: "topic-closed" };
  if (signature === refused) return { ...place, kind: "open-rejected" };
  if (signature !== rejected) return undefined;
  return { ...place, kind: "batch-rejected", reason: rejections[Number(log.data)] ?? "unknown-topic" };
}

function placeOf(log: RpcLog, address: Address): LogPlace {
  return {
    address,
    blockNumber: Number(log.blockNumber),
    blockHash: log.blockHash,
    transactionHash: log.transactionHash,
    logIndex: Number(log.logIndex),
  };
}

/** By hand, so that no two names on the chain read the same: a byte order mark stays, and what is no UTF-8 becomes U+FFFD. */
const nameDecoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Data is the set of writers, offset of the name, length of the name, name. */
function parseOpened(log: RpcLog): { kind: "topic-opened"; name: string; sender: Address } {
  const name = nameDecoder.decode(bytesIn(fromHex(log.data), 3 * word));
  return { kind: "topic-opened", name, sender: addressIn(log.topics[2]) };
}

function addressIn(topic: string | undefined): Address {
  return `0x${(topic ?? "").slice(-40)}`;
}

/** By hand: the one log that comes in masses. Data is root, count, offset of events, length of events, events. */
function parsePublished(
  log: RpcLog,
): Pick<
  Extract<ContractLog, { kind: "events-published" }>,
  "kind" | "firstSequence" | "sender" | "count" | "eventsRoot" | "events"
> {
  const data = fromHex(log.data);
  return {
    kind: "events-published",
    firstSequence: Number(log.topics[2] ?? 0),
    sender: addressIn(log.topics[3]),
    count: data.length < 2 * word ? 0 : data.readUInt32BE(2 * word - 4),
    eventsRoot: `0x${log.data.slice(2, 2 + 2 * word)}`,
    events: bytesIn(data, 4 * word),
  };
}

/** The bytes that begin at `at`; the word before holds their length. */
function bytesIn(data: Buffer, at: number): Buffer {
  return data.length < at ? data.subarray(0, 0) : data.subarray(at, at + data.readUInt32BE(at - 4));
}
