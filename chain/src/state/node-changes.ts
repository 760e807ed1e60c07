/** Changed trie nodes as latin1 (see `toLatin1`), by key; undefined if a node was deleted. */
export type NodeChanges = ReadonlyMap<string, string | undefined>;
