/**
 * Options of a query about one event: it asks once while a view shows the answer, and anew when a view opens again. In between, a reorg may have removed the
 * event, or put another one with its eventId in its place.
 */
export const whileShown = { staleTime: Number.POSITIVE_INFINITY, gcTime: 0 };
