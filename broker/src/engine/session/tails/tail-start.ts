import { BrokerError, isBrokerError, parseEventId, parseTime, quote } from "@stele/wire";
import { beforeBlock, blockOf, endOfBlock, type Position, positionZero } from "../../../domain/position.ts";
import type { TopicName } from "../../../domain/topic-name.ts";
import { reorganisationBlocksMax } from "../../../ports/store.ts";
import type { StartPosition, TailCall, TailStart } from "../../broker.ts";
import type { Group } from "../../group.ts";
import { illegalPlace } from "../../illegal-place.ts";
import type { FindStart } from "../session-parts.ts";

export interface TailStartParts {
  readonly findStart: FindStart;
}

type Named = Pick<TailCall, "after" | "lastEventId">;

interface Asked extends Named {
  /** Whether the caller may name an event of a topic. */
  readonly mayFind: (topic: TopicName) => boolean;
}

type Start = TailStart & StartPosition;

const first = "OFFSET_FIRST";
const last = "OFFSET_LAST";
/** `@<block>`: the end of a block, or `@<block>.<generation>` if the index had rolled back that often. */
const blockPlace = /^@(0|[1-9]\d{0,9})(?:\.([1-9]\d{0,9}))?$/;

/**
 * Replaces a time in `after` by the place in the chain. Asks the chain, which may answer late or never. Returns a call without a time as it is.
 * @throws BrokerError 200001, 200205.
 */
export async function withPlace<Call extends Named>(group: Group, call: Call, signal: AbortSignal): Promise<Call> {
  const { after, lastEventId } = call;
  if (!isBlank(lastEventId) || isBlank(after)) return call;
  const time = parseTime(after);
  if (Number.isNaN(time)) throw new BrokerError("parameterInvalid", { details: `${quote(after)} is not a valid time` });
  return time === undefined ? call : { ...call, after: await findTime(group, time, signal) };
}

/**
 * Finds where a tail begins. Refuses an `after` that names no place, but accepts any well-formed `lastEventId`: a client that comes back can do no better
 * than to begin where the chain may have changed. Call {@link withPlace} first: `after` must not be a time.
 * @throws BrokerError 100300 to 100304, 200205.
 */
export async function findTailStart(parts: TailStartParts, group: Group, asked: Asked): Promise<Start> {
  const { after, lastEventId } = asked;
  const find: Find = (offset) => parts.findStart(group, offset, asked.mayFind);
  if (!isBlank(lastEventId)) return resume(find, group, lastEventId);
  if (isBlank(after)) return begin(find, last);
  const place = blockPlace.exec(after);
  if (place !== null) return afterBlock(group, place);
  try {
    return await begin(find, after);
  } catch (error) {
    const others = ", @<block>, a time such as 2026-11-23T09:00:00Z";
    throw isBrokerError(error, "eventIdIllegal") ? illegalPlace(after, others) : error;
  }
}

/**
 * The place to resume from, for a reader that has every event up to the position. It names the generation of the index, since a later rollback may replace
 * the block.
 */
export function placeIdOf(position: Position, generation = 0): string {
  const block = blockOf(position);
  const suffix = generation === 0 ? "" : `.${generation}`;
  if (position === endOfBlock(block)) return `@${block}${suffix}`;
  return block === 0 ? first : `@${block - 1}${suffix}`;
}

type Find = (offset: string) => Promise<StartPosition>;

async function begin(find: Find, offset: string): Promise<Start> {
  const found = await find(offset);
  const isOffset = offset === first || offset === last;
  return { ...found, id: isOffset ? placeIdOf(found.position, found.generation) : offset, isRolledBack: false };
}

/** Resumes at the last id of a tail. */
async function resume(find: Find, group: Group, id: string): Promise<Start> {
  const place = blockPlace.exec(id);
  if (place !== null) return afterBlock(group, [place[0], place[1], place[2] ?? "0"]);
  try {
    return await begin(find, id);
  } catch (error) {
    if (!isBrokerError(error, "eventNotExist") && !isBrokerError(error, "eventBeyondHead")) throw error;
    return belowRollbacks(group, parseEventId(id).blockNumber);
  }
}

/** Begins after a block. If the place names another generation of the index, or a block that the index lacks, begins as {@link belowRollbacks} does. */
async function afterBlock(group: Group, [, number, of]: readonly (string | undefined)[]): Promise<Start> {
  const block = Number(number);
  const { blockNumber, generation } = (await group.findLiveHead()) ?? { blockNumber: 0, generation: 0 };
  const isSame = of === undefined || Number(of) === generation;
  if (block > blockNumber || !isSame) return belowRollbacks(group, block);
  return startAt({ position: endOfBlock(block), generation });
}

/** Begins `reorganisationBlocksMax` blocks before a block. No rollback that removed the block went further: all events up to there are still on the chain. */
async function belowRollbacks(group: Group, block: number): Promise<Start> {
  const head = await group.findLiveHead();
  const lowest = Math.min(block - 1, head?.blockNumber ?? 0) - reorganisationBlocksMax;
  const position = lowest < 0 ? positionZero : endOfBlock(lowest);
  return { ...startAt({ position, generation: head?.generation ?? 0 }), isRolledBack: true };
}

/** The place before the first block made in the second of `timeMs` or later. */
async function findTime(group: Group, timeMs: number, signal: AbortSignal): Promise<string> {
  const newest = (await group.findLiveHead())?.blockNumber ?? 0;
  const block = await group.times.findBlockAt(Math.floor(timeMs / 1000) * 1000, newest, signal);
  return placeIdOf(beforeBlock(block));
}

function startAt(found: StartPosition): Start {
  return { ...found, id: placeIdOf(found.position, found.generation), isRolledBack: false };
}

function isBlank(text: string | undefined): text is undefined | "" {
  return text === undefined || text.trim() === "";
}
