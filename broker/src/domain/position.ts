/** The place of an event in its group: block number × 2^20 + index of the event in its block. A safe integer, the same on every node. */
export type Position = number & { readonly __brand: "Position" };

/** Maximum number of events in one block: 2^20. */
export const eventsPerBlockMax = 2 ** 20;

/** Highest block number that a position can contain: 2^33 - 1. */
export const blockNumberMax = 2 ** 33 - 1;

/** The position before every event. */
export const positionZero = toPosition(0, 0);

/** The position after which there is no event. */
export const lastPosition = toPosition(blockNumberMax, eventsPerBlockMax - 1);

/** Combines a block number and an index in that block. @throws RangeError if one of them is out of bounds. */
export function toPosition(blockNumber: number, index: number): Position {
  if (!Number.isInteger(blockNumber) || blockNumber < 0 || blockNumber > blockNumberMax) {
    throw new RangeError(`block number ${blockNumber} is outside 0…${blockNumberMax}`);
  }
  if (!Number.isInteger(index) || index < 0 || index >= eventsPerBlockMax) {
    throw new RangeError(`event index ${index} is outside 0…${eventsPerBlockMax - 1}`);
  }
  return (blockNumber * eventsPerBlockMax + index) as Position; // Both bounds are checked above.
}

/** The last position in a block: the cursor of a subscription that is done with the block. */
export function endOfBlock(blockNumber: number): Position {
  return toPosition(blockNumber, eventsPerBlockMax - 1);
}

/** The position before the first event of a block. */
export function beforeBlock(blockNumber: number): Position {
  return blockNumber === 0 ? positionZero : endOfBlock(blockNumber - 1);
}

/** The block of a position. */
export function blockOf(position: Position): number {
  return Math.floor(position / eventsPerBlockMax);
}

/** The position `count` places later. @throws RangeError if that is not in the same block. */
export function advance(position: Position, count: number): Position {
  return toPosition(blockOf(position), (position % eventsPerBlockMax) + count);
}

/** The position just before, which may be the end of the previous block. @throws RangeError if there is none. */
export function before(position: Position): Position {
  return fromStored(position - 1);
}

/** The earlier of two positions. */
export function minOf(left: Position, right: Position): Position {
  return left < right ? left : right;
}

/** The later of two positions. */
export function maxOf(left: Position, right: Position): Position {
  return left > right ? left : right;
}

/** Converts a stored integer back to a position. @throws RangeError if it is none. */
export function fromStored(value: number): Position {
  return toPosition(Math.floor(value / eventsPerBlockMax), value % eventsPerBlockMax);
}
