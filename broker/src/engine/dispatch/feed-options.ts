import type { FeedOptions, FeedOrder } from "./feed.ts";

/**
 * Field by field, and so are the other objects that each connection has: one that is spread from another and gets a function has a hidden class of its
 * own, which takes three times what it takes.
 */
export function toFeedOptions(
  parts: Omit<FeedOptions, keyof FeedOrder>,
  order: FeedOrder,
  mayReceive: FeedOptions["mayReceive"],
): FeedOptions {
  const { hub, recent, slices, limits, groupId, progress, findGeneration } = parts;
  const { filters, interest, after, onRead, onPassed } = order;
  return {
    hub,
    recent,
    slices,
    limits,
    groupId,
    progress,
    findGeneration,
    filters,
    interest,
    after,
    onRead,
    onPassed,
    mayReceive,
  };
}
