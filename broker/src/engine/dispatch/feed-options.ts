import type { FeedOptions, FeedRequest } from "./feed.ts";

/**
 * Builds the options of a feed. Copies field by field, to save memory for each connection. If an object is spread from another and then gets a function, it has
 * a hidden class of its own, which takes three times as much memory as the object.
 */
export function toFeedOptions(
  parts: Omit<FeedOptions, keyof FeedRequest>,
  request: FeedRequest,
  mayReceive: FeedOptions["mayReceive"],
): FeedOptions {
  const { hub, recent, slices, limits, groupId, progress, findGeneration } = parts;
  const { filters, interest, after, onRead, onPassed } = request;
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
