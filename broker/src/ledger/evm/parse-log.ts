import { topicAbi, topicRegistryAbi } from "@stele/contracts";
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
  /** The topic contract that it is about. */
  readonly address: Address;
}

/** One of the five logs of our contracts. Of `events-published` nothing is checked yet, nor whether its address is a topic. */
export type ContractLog = LogPlace &
  (
    | { readonly kind: "topic-opened"; readonly name: string; readonly sender: Address }
    | { readonly kind: "topic-closed" | "topic-reopened" }
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
  const item = [...topicAbi, ...topicRegistryAbi].find(
    (candidate) => candidate.type === "event" && candidate.name === name,
  );
  if (item?.type !== "event") throw new Error(`the contracts' interface lacks ${name}`);
  return toEventSelector(item);
};

const opened = signatureOf("TopicOpened");
const reopened = signatureOf("TopicReopened");
const closed = signatureOf("TopicClosed");
const rejected = signatureOf("BatchRejected");
const published = signatureOf("EventsPublished");

/** First topics of all logs that we read. */
export const logSignatures: readonly Hex[] = [opened, reopened, closed, rejected, published];
/** Those by which the registry says what became of a topic. */
export const topicSignatures: readonly Hex[] = [opened, reopened, closed];
/** The one by which it says that a batch was skipped. */
export const rejectedSignature = rejected;

const rejections: readonly (Rejection | undefined)[] = [undefined, "unknown-topic", "closed-topic", "empty-batch"];
const word = 32;

/** Reads a log that `registry` or a topic wrote; undefined for one that another contract wrote under the same signature. */
export function parseLog(log: RpcLog, registry: Address): ContractLog | undefined {
  const [signature, first] = log.topics;
  const address = log.address.toLowerCase() as Address; // An address in lower case is still one.
  if (signature === published) return { ...placeOf(log, address), ...parsePublished(log) };
  if (address !== registry || first === undefined) return undefined;
  const place = placeOf(log, `0x${first.slice(-40)}`);
  if (signature === opened) return { ...place, ...parseOpened(log) };
  if (signature === reopened) return { ...place, kind: "topic-reopened" };
  if (signature === closed) return { ...place, kind: "topic-closed" };
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

function parseOpened(log: RpcLog): { kind: "topic-opened"; name: string; sender: Address } {
  const data = fromHex(log.data);
  const length = data.length < 2 * word ? 0 : data.readUInt32BE(2 * word - 4);
  const name = nameDecoder.decode(data.subarray(2 * word, 2 * word + length));
  return { kind: "topic-opened", name, sender: addressIn(log.topics[2]) };
}

function addressIn(topic: string | undefined): Address {
  return `0x${(topic ?? "").slice(-40)}`;
}

/** By hand: the one log that comes in masses. Data is count, offset of events, length of events, events. */
function parsePublished(
  log: RpcLog,
): Pick<
  Extract<ContractLog, { kind: "events-published" }>,
  "kind" | "firstSequence" | "sender" | "count" | "eventsRoot" | "events"
> {
  const data = fromHex(log.data);
  const length = data.length < 3 * word ? 0 : data.readUInt32BE(3 * word - 4);
  return {
    kind: "events-published",
    firstSequence: Number(log.topics[1] ?? 0),
    sender: addressIn(log.topics[2]),
    count: data.length < word ? 0 : data.readUInt32BE(word - 4),
    eventsRoot: log.topics[3] ?? "0x",
    events: data.subarray(3 * word, 3 * word + length),
  };
}
