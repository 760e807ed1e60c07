/** Changed trie nodes as latin1 (see `toText`), by key; undefined if a node was deleted. */
export type NodeChanges = ReadonlyMap<string, string | undefined>;
