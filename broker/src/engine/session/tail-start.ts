import { BrokerError, isBrokerError, parseEventId, quote } from "@stele/wire";
import { blockOf, endOfBlock, type Position, positionZero } from "../../domain/position.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import { findFirstTrue } from "../../lib/first-true.ts";
import { parseTime } from "../../lib/parse-time.ts";
import { reorganisationBlocksMax } from "../../ports/store.ts";
import type { StartPosition, TailOrder, TailStart } from "../broker.ts";
import type { Group } from "../group.ts";
import type { FindStart } from "./session-parts.ts";

export interface TailStartParts {
  readonly findStart: FindStart;
}

interface Asked extends Pick<TailOrder, "after" | "lastEventId"> {
  /** Whether an event of a topic may be named. */
  readonly mayFind: (topic: TopicName) => boolean;
  /** Aborts when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
}

type Start = TailStart & StartPosition;

const first = "OFFSET_FIRST";
const last = "OFFSET_LAST";
/** `@<block>`: the end of a block. */
const blockPlace = /^@(0|[1-9]\d{0,9})$/;

/**
 * Where a tail begins. `after` is refused where it names no place. The last id of a client never is, as long as it is well-formed: a client that comes
 * back could not do better than to begin where the chain may have changed.
 * @throws BrokerError 200001, 100300 to 100304, 200205.
 */
export async function findTailStart(parts: TailStartParts, group: Group, asked: Asked): Promise<Start> {
  const { after, lastEventId } = asked;
  const find: Find = (offset) => parts.findStart(group, offset, asked.mayFind);
  if (!isBlank(lastEventId)) return resume(find, group, lastEventId);
  if (isBlank(after)) return begin(find, last);
  const time = parseTime(after);
  if (Number.isNaN(time)) throw new BrokerError("parameterInvalid", { details: `${quote(after)} is no time` });
  if (time !== undefined) return findTime(group, time, asked.signal);
  return blockPlace.test(after) ? resume(find, group, after) : begin(find, after);
}

/** Names the last place up to which a reader that is at the position has everything. */
export function placeIdOf(position: Position): string {
  const block = blockOf(position);
  if (position === endOfBlock(block)) return `@${block}`;
  return block === 0 ? first : `@${block - 1}`;
}

type Find = (offset: string) => Promise<StartPosition>;

async function begin(find: Find, offset: string): Promise<Start> {
  const found = await find(offset);
  const isOffset = offset === first || offset === last;
  return { ...found, id: isOffset ? placeIdOf(found.position) : offset, isTakenBack: false };
}

async function resume(find: Find, group: Group, id: string): Promise<Start> {
  const block = blockPlace.exec(id)?.[1];
  if (block !== undefined) return afterBlock(group, Number(block));
  try {
    return await begin(find, id);
  } catch (error) {
    if (!isBrokerError(error, "eventNotExist") && !isBrokerError(error, "eventBeyondHead")) throw error;
    return takenBack(group, parseEventId(id).blockNumber);
  }
}

async function afterBlock(group: Group, block: number): Promise<Start> {
  const head = await group.findHead();
  if (block > (head?.blockNumber ?? 0)) return takenBack(group, block);
  return startAt({ position: endOfBlock(block), generation: head?.generation ?? 0 });
}

/** No roll-back goes further below the block of an event that was final: everything before was and is on the chain. */
async function takenBack(group: Group, block: number): Promise<Start> {
  const head = await group.findHead();
  const lowest = Math.min(block - 1, head?.blockNumber ?? 0) - reorganisationBlocksMax;
  const position = lowest < 0 ? positionZero : endOfBlock(lowest);
  return { ...startAt({ position, generation: head?.generation ?? 0 }), isTakenBack: true };
}

/** Before the first block of that second or later. Times of blocks never go back, and most that are asked for are recent. */
async function findTime(group: Group, timeMs: number, signal: AbortSignal): Promise<Start> {
  const time = Math.floor(timeMs / 1000) * 1000;
  const head = await group.findHead();
  const newest = head?.blockNumber ?? 0;
  const isBefore = async (depth: number): Promise<boolean> =>
    ((await group.ledger.readBlock(newest - depth, signal))?.timestamp ?? time) < time;
  const depth = await findFirstTrue(newest + 1, isBefore);
  const position = depth > newest ? positionZero : endOfBlock(newest - depth);
  return startAt({ position, generation: head?.generation ?? 0 });
}

function startAt(found: StartPosition): Start {
  return { ...found, id: placeIdOf(found.position), isTakenBack: false };
}

function isBlank(text: string | undefined): text is undefined | "" {
  return text === undefined || text.trim() === "";
}
