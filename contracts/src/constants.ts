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
 * Fixed gas of the registry's `publish`: `base` for each call and `perBatch` for each batch. Reading and writing the topic's slot, copying and logging the
 * events, and memory come on top. Valid only for the code that `topicRegistryCode` describes.
 */
export const publishGas: { readonly base: number; readonly perBatch: number } = { base: 526, perBatch: 4_626 };

/** Storage slot of the registry's array `_owners`: the owner of each set of writers, by the number of the set. */
export const writerOwnersSlot = 0;

/** Longest topic name that the registry accepts, in bytes of UTF-8. */
export const topicNameBytesMax = 1024;
