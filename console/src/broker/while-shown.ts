/**
 * Options of a query about one event: it asks once while a view shows the answer, and again when a view opens. In between, a reorg may have removed the event,
 * or put another one with its eventId in its place. Where several views ask the same, each needs a key of its own, or one takes over the answer of another.
 */
export const whileShown = { staleTime: Number.POSITIVE_INFINITY, gcTime: 0 };
