import { topicRegistryAbi } from "@stele/contracts";
import { fromHex, type Hex, toHex } from "@stele/eth/node";
import { toEventSelector } from "viem/utils";
import type { Address, Hash } from "../../../domain/topic.ts";
import type { BatchOutcome } from "../../../ports/ledger.ts";
import type { RpcLog } from "../endpoint/rpc-log.ts";
import type { RawLog } from "./pushed-block.ts";

type Rejection = Extract<BatchOutcome, { status: "rejected" }>["reason"];

interface LogPlace {
  readonly blockNumber: number;
  readonly blockHash: Hash;
  readonly transactionHash: Hash;
  readonly logIndex: number;
  /** The topic's address. */
  readonly address: Address;
}

/** A parsed log of the registry. The events of `events-published` are not verified yet. */
export type ContractLog = LogPlace &
  (
    | { readonly kind: "topic-opened"; readonly name: string; readonly sender: Address }
    | { readonly kind: "topic-closed" | "topic-reopened" | "open-rejected" }
    | { readonly kind: "batch-rejected"; readonly reason: Rejection }
    | {
        readonly kind: "events-published";
        readonly firstSequence: number;
        /** The account that called the registry. */
        readonly sender: Address;
        readonly count: number;
        readonly eventsRoot: Hex;
        readonly events: Buffer;
      }
  );

/** The first log topic of the registry's logs of this event. */
export function signatureOf(name: string): Hex {
  const item = topicRegistryAbi.find((candidate) => candidate.type === "event" && candidate.name === name);
  if (item?.type !== "event") throw new Error(`the registry's interface lacks ${name}`);
  return toEventSelector(item);
}

const opened = signatureOf("TopicOpened");
const reopened = signatureOf("TopicReopened");
const closed = signatureOf("TopicClosed");
const refused = signatureOf("OpenRejected");
const rejected = signatureOf("BatchRejected");
export const publishedSignature = signatureOf("EventsPublished");

/** The first log topics of the logs that change a topic of the broker. */
export const changeSignatures: readonly Hex[] = [opened, reopened, closed, publishedSignature];
/** The first log topics of the logs of rejected calls. */
export const refusalSignatures: readonly Hex[] = [refused, rejected];
/** The first log topics of all logs that the ledger reads. */
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

/** The fields that all logs of a transaction share, and the registry whose logs are parsed. */
export interface LogSource extends Omit<LogPlace, "address" | "logIndex"> {
  readonly registry: Address;
}

/** Like `parseRawLog`, for a log from an endpoint. */
export function parseLog(log: RpcLog, registry: Address): ContractLog | undefined {
  const { topics, blockHash, transactionHash } = log;
  const address: Address = `0x${log.address.slice(2).toLowerCase()}`;
  if (address !== registry) return undefined;
  const source = { registry, blockNumber: Number(log.blockNumber), blockHash, transactionHash };
  return parseRawLog({ address, topics, data: fromHex(log.data) }, source, Number(log.logIndex));
}

/** Parses a log of the registry; undefined for logs of other contracts or kinds. */
export function parseRawLog(log: RawLog, source: LogSource, logIndex: number): ContractLog | undefined {
  const [signature, topic] = log.topics;
  if (log.address !== source.registry || topic === undefined) return undefined;
  const { blockNumber, blockHash, transactionHash } = source;
  const place = { address: addressIn(topic), blockNumber, blockHash, transactionHash, logIndex };
  if (signature === publishedSignature) return parsePublished(log, place);
  if (signature === opened) return parseOpened(log, place);
  if (signature === reopened) return { kind: "topic-reopened", ...place };
  if (signature === closed) return { kind: "topic-closed", ...place };
  if (signature === refused) return { kind: "open-rejected", ...place };
  if (signature !== rejected) return undefined;
  return { kind: "batch-rejected", reason: rejections[log.data[word - 1] ?? 0] ?? "unknown-topic", ...place };
}

/** Keeps a byte order mark, so that a name with one differs from the same name without it. Invalid UTF-8 becomes U+FFFD. */
const nameDecoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** Data is the set of writers, offset of the name, length of the name, name. */
function parseOpened(log: RawLog, place: LogPlace): ContractLog {
  const name = nameDecoder.decode(bytesIn(log.data, 3 * word));
  return { kind: "topic-opened", name, sender: addressIn(log.topics[2]), ...place };
}

function addressIn(topic: string | undefined): Address {
  return `0x${(topic ?? "").slice(-40)}`;
}

/** Parses by hand, because this log is frequent. Data is root, count, offset of events, length of events, events. */
function parsePublished({ topics, data }: RawLog, place: LogPlace): ContractLog {
  // Field by field: V8 keeps the fields of a spread outside of the object, in 200 bytes more.
  return {
    kind: "events-published",
    firstSequence: Number(topics[2] ?? 0),
    sender: addressIn(topics[3]),
    count: data.length < 2 * word ? 0 : data.readUInt32BE(2 * word - 4),
    eventsRoot: toHex(data.subarray(0, word)),
    events: bytesIn(data, 4 * word),
    address: place.address,
    blockNumber: place.blockNumber,
    blockHash: place.blockHash,
    transactionHash: place.transactionHash,
    logIndex: place.logIndex,
  };
}

/** The bytes at `at`; the word before contains their length. */
function bytesIn(data: Buffer, at: number): Buffer {
  return data.length < at ? data.subarray(0, 0) : data.subarray(at, at + data.readUInt32BE(at - 4));
}
