/** Changed trie nodes as latin1 (see `toText`), by key; undefined where a node is gone. */
export type NodeChanges = ReadonlyMap<string, string | undefined>;
