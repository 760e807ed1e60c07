import { isSameBytes } from "@stele/eth/node";
import type { Block } from "../blocks/block.ts";
import type { Log } from "../blocks/log.ts";
import type { IncludedTransaction } from "../chain/block-reader.ts";
import type { ReadableChain } from "../chain/readable-chain.ts";
import {
  LOG_FILTER_ALTERNATIVES_MAX,
  LOGS_ANSWER_BYTES_MAX,
  LOGS_ANSWER_LOGS_MAX,
  LOGS_SEARCH_TRANSACTIONS_MAX,
} from "../limits.ts";
import { invalidParams, ProviderRpcError, RPC_ERROR_CODES, searchTooSlow, serverError } from "../rpc-error.ts";
import { addressKey, type Place, toPlace, topicKey } from "../storage/places.ts";
import type { IndexEntry } from "../storage/unsaved-effects.ts";
import { findBlock, getBlock } from "./block-tag.ts";
import { formatLog } from "./format.ts";
import { isRecord, toFixed, withoutNulls } from "./params.ts";

/** Criteria for the address and the topics of a log. */
export interface LogCriteria {
  /** Undefined for every address. */
  readonly addresses: readonly Uint8Array[] | undefined;
  /** Alternatives for each topic; undefined for any. */
  readonly topics: readonly (readonly Uint8Array[] | undefined)[];
}

export interface LogQuery extends LogCriteria {
  readonly from: bigint;
  readonly to: bigint;
}

/** One search, up to the newest block at most. */
interface LogSearch extends LogQuery {
  /** When the search must end if it has more than one block, as `performance.now()` tells it. */
  readonly endsAt: number;
}

interface EntriesWanted {
  readonly keys: readonly number[] | undefined;
  readonly fewerThan?: number | undefined;
}

/** Maximum number of topics of a log, and so of a log filter. */
const TOPICS_MAX = 4;
const ADDRESS_BYTES = 20;
const TOPIC_BYTES = 32;

export function toLogCriteria(filter: unknown): LogCriteria {
  if (!isRecord(filter)) throw invalidParams("invalid argument 0: a log filter must be an object");
  return { addresses: toAlternatives(filter["address"], ADDRESS_BYTES), topics: toTopics(filter["topics"]) };
}

export function toLogQuery(chain: ReadableChain, filter: unknown): LogQuery {
  const criteria = toLogCriteria(filter);
  const { fromBlock, toBlock, blockHash } = withoutNulls(filter as Readonly<Record<string, unknown>>); // toLogCriteria has checked it
  if (blockHash !== undefined) {
    if (fromBlock !== undefined || toBlock !== undefined) {
      throw invalidParams("cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other");
    }
    const head = chain.blocks.findHeadByHash(toFixed(blockHash, TOPIC_BYTES, "block hash"));
    if (head === undefined) throw serverError("unknown block");
    return { ...criteria, from: head.header.number, to: head.header.number };
  }
  const from = fromBlock === undefined ? chain.head.header.number : toNumber(chain, fromBlock);
  const to = toBlock === undefined ? chain.head.header.number : toNumber(chain, toBlock);
  if (from > to && findBlock(chain, toBlock) !== undefined && findBlock(chain, fromBlock) !== undefined) {
    throw invalidParams("invalid block range params");
  }
  return { ...criteria, from, to };
}

/** The number of the block that a tag names. A number past the newest block is valid: no logs are there yet. */
function toNumber(chain: ReadableChain, tag: unknown): bigint {
  if (typeof tag === "string" && tag.startsWith("0x")) {
    const head = findBlock(chain, tag);
    return head === undefined ? BigInt(tag) : head.header.number;
  }
  return getBlock(chain, tag).header.number;
}

function toAlternatives(value: unknown, length: number): readonly Uint8Array[] | undefined {
  if (value === undefined || value === null) return undefined;
  const values: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (values.length > LOG_FILTER_ALTERNATIVES_MAX) {
    throw invalidParams(`exceed max addresses or topics: at most ${LOG_FILTER_ALTERNATIVES_MAX} alternatives`);
  }
  if (values.length === 0) return undefined;
  return values.map((one) => toFixed(one, length, length === ADDRESS_BYTES ? "address" : "topic"));
}

function toTopics(value: unknown): LogCriteria["topics"] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw invalidParams("invalid topics: must be an array");
  if (value.length > TOPICS_MAX) throw invalidParams("exceed max topics");
  return value.map((topic: unknown) => toAlternatives(topic, TOPIC_BYTES));
}

export function isMatch(log: Log, { addresses, topics }: LogCriteria): boolean {
  if (addresses !== undefined && !addresses.some((address) => isSameBytes(address, log.address))) return false;
  if (topics.length > log.topics.length) return false;
  return topics.every((alternatives, index) => {
    const topic = log.topics[index];
    return alternatives === undefined || (topic !== undefined && alternatives.some((one) => isSameBytes(one, topic)));
  });
}

/**
 * The matching logs, in order.
 * @throws ProviderRpcError if the answer is too large or the search takes too long, but not within the first block: nobody could ask for less. Also throws as
 * `readEntry` does.
 */
export function findLogs(chain: ReadableChain, query: LogQuery): Record<string, unknown>[] {
  const { head, options } = chain;
  const to = query.to < head.header.number ? query.to : head.header.number;
  const endsAt = performance.now() + options.callTimeMsMax;
  const answer = new LogAnswer();
  let firstBlock: bigint | undefined;
  for (const included of candidates(chain, { ...query, to, endsAt })) {
    const { number } = included.head.header;
    firstBlock ??= number;
    if (number !== firstBlock && performance.now() > endsAt) throw searchTooSlow(options.callTimeMsMax);
    answer.add(included, query);
    if (number !== firstBlock && answer.isTooLarge) throw tooLarge();
  }
  return answer.logs;
}

/** The logs of one block that match. */
export function matchBlock(block: Block, criteria: LogCriteria): Record<string, unknown>[] {
  const answer = new LogAnswer();
  for (const [index, executed] of block.executed.entries()) answer.add({ ...executed, head: block, index }, criteria);
  return answer.logs;
}

class LogAnswer {
  readonly logs: Record<string, unknown>[] = [];
  #bytes = 0;

  get isTooLarge(): boolean {
    return this.logs.length > LOGS_ANSWER_LOGS_MAX || this.#bytes > LOGS_ANSWER_BYTES_MAX;
  }

  add(included: IncludedTransaction, criteria: LogCriteria): void {
    for (const [at, log] of included.receipt.logs.entries()) {
      if (!isMatch(log, criteria)) continue;
      this.#bytes += log.data.length;
      this.logs.push(formatLog(log, at, included));
    }
  }
}

function tooLarge(): ProviderRpcError {
  return new ProviderRpcError(
    RPC_ERROR_CODES.limitExceeded,
    `query returned more than ${LOGS_ANSWER_LOGS_MAX} results or ${LOGS_ANSWER_BYTES_MAX} bytes; ask for fewer blocks`,
  );
}

function tooManyTransactions(): ProviderRpcError {
  return new ProviderRpcError(
    RPC_ERROR_CODES.limitExceeded,
    `query searches more than ${LOGS_SEARCH_TRANSACTIONS_MAX} transactions; ask for fewer blocks`,
  );
}

function* candidates(chain: ReadableChain, search: LogSearch): Generator<IncludedTransaction> {
  if (search.topics[0] === undefined && search.addresses === undefined) {
    for (let number = search.from; number <= search.to; number += 1n) yield* wholeBlock(chain, number);
    return;
  }
  for (const entry of fewestEntries(chain, search)) {
    const included = chain.blocks.readEntry(entry);
    if (included !== undefined) yield included;
  }
}

/** The entries of the first topics, or of the addresses if these have fewer, in order. @throws ProviderRpcError if there are too many or they take too long. */
function fewestEntries(chain: ReadableChain, search: LogSearch): readonly IndexEntry[] {
  const byTopic = entriesOf(chain, { keys: search.topics[0]?.map(topicKey) }, search);
  const byAddress = entriesOf(chain, { keys: search.addresses?.map(addressKey), fewerThan: byTopic?.length }, search);
  const entries = byAddress ?? byTopic;
  if (entries === undefined) throw tooManyTransactions();
  return entries.toSorted((left, right) => left.place - right.place);
}

/** One entry for each place; undefined if there are no keys, or too many entries. @throws ProviderRpcError if they take too long. */
function entriesOf(
  chain: ReadableChain,
  { keys, fewerThan = LOGS_SEARCH_TRANSACTIONS_MAX + 1 }: EntriesWanted,
  { from, to, endsAt }: LogSearch,
): readonly IndexEntry[] | undefined {
  if (keys === undefined || fewerThan === 0) return undefined;
  const entries = new Map<Place, IndexEntry>();
  for (const key of new Set(keys)) {
    for (const place of chain.readLogPlaces(key, toPlace(from, 0), toPlace(to + 1n, 0))) {
      entries.set(place, { key, place });
      if (entries.size >= fewerThan) return undefined;
      if (from !== to && performance.now() > endsAt) throw searchTooSlow(chain.options.callTimeMsMax);
    }
  }
  return [...entries.values()];
}

function* wholeBlock(chain: ReadableChain, number: bigint): Generator<IncludedTransaction> {
  const head = chain.blocks.getHead(number);
  for (const [index, executed] of chain.blocks.readExecuted(head).entries()) yield { ...executed, head, index };
}
