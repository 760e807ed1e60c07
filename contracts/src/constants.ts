/** Values of `reason` in the registry's `BatchRejected`; the registry reports the first that applies. */
export const batchRejectedReason = {
  topicUnknown: 1,
  topicClosed: 2,
  batchEmpty: 3,
  countTooLarge: 4,
  notAWriter: 5,
} as const;

/** The set of writers that contains everyone. */
export const everyone = 0;

/**
 * Gas of the instructions of the registry's `publish` whose price no argument changes: once, and for each batch. Without reading and writing the topic's
 * slot, copying and logging the events, and the memory. It belongs to the code of `topicRegistryCode`.
 */
export const publishGas: { readonly base: number; readonly perBatch: number } = { base: 526, perBatch: 4_626 };

/** The storage slot of the registry whose array holds the owner of each set of writers, by its number. */
export const writerOwnersSlot = 0;

/** Longest topic name that the registry accepts, in bytes of UTF-8. */
export const topicNameBytesMax = 1024;
