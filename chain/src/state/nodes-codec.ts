import type { NodeChanges } from "./node-changes.ts";

const KEY_LENGTH_BYTES = 1;
const NODE_LENGTH_BYTES = 4;
/** Written instead of the length of a missing node. */
const ABSENT = 0xffff_ffff;

/** Encodes trie nodes into shared memory, so that passing them to another thread copies nothing. */
export function shareNodes(nodes: NodeChanges): SharedArrayBuffer {
  const shared = new SharedArrayBuffer(nodesBytes(nodes));
  writeNodes(Buffer.from(shared), nodes);
  return shared;
}

/** How many bytes `writeNodes` writes. */
export function nodesBytes(nodes: NodeChanges): number {
  let length = 0;
  // Here and below: Map.forEach allocates no pair for each entry.
  nodes.forEach((node, key) => {
    length += KEY_LENGTH_BYTES + key.length + NODE_LENGTH_BYTES + (node?.length ?? 0);
  });
  return length;
}

/** Writes nodes one after another, from the start of `bytes`. */
export function writeNodes(bytes: Buffer, nodes: NodeChanges): void {
  let at = 0;
  nodes.forEach((node, key) => {
    at = bytes.writeUInt8(key.length, at);
    at += bytes.write(key, at, "latin1");
    at = bytes.writeUInt32BE(node?.length ?? ABSENT, at);
    if (node !== undefined) at += bytes.write(node, at, "latin1");
  });
}

export function decodeNodes(bytes: Buffer): NodeChanges {
  const nodes = new Map<string, string | undefined>();
  let at = 0;
  while (at < bytes.length) {
    const keyStart = at + KEY_LENGTH_BYTES;
    const keyEnd = keyStart + bytes.readUInt8(at);
    const length = bytes.readUInt32BE(keyEnd);
    const start = keyEnd + NODE_LENGTH_BYTES;
    const end = length === ABSENT ? start : start + length;
    nodes.set(
      bytes.toString("latin1", keyStart, keyEnd),
      length === ABSENT ? undefined : bytes.toString("latin1", start, end),
    );
    at = end;
  }
  return nodes;
}
