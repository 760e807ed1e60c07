/** Changed trie nodes by key; undefined where a node is gone. */
export type NodeChanges = ReadonlyMap<string, Uint8Array | undefined>;
