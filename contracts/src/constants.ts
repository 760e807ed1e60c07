/** Values of `reason` in the registry's `BatchRejected`; the first that holds is the one given. */
export const batchRejectedReason = { topicUnknown: 1, topicClosed: 2, batchEmpty: 3 } as const;

/** Longest topic name that the registry takes, in bytes of UTF-8. */
export const topicNameBytesMax = 1024;
