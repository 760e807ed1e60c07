// The part of this package that also runs in browsers. node.ts needs Node.js.
export { findBytes, type Hex, toHexText } from "./hex-text.ts";
export { hashBytes, hashHeap } from "./keccak/hash-heap.ts";
export { isSameBytes } from "./is-same-bytes.ts";
export { type Keccak256, portableKeccak256 } from "./keccak/portable-keccak.ts";
export { MalformedError } from "./malformed-error.ts";
export { RlpList, toInteger, toSafeInteger } from "./rlp/rlp-list.ts";
export { RlpReader } from "./rlp/rlp-reader.ts";
export { integerBytes, listBytes, RlpWriter, stringBytes, textBytes } from "./rlp/rlp-writer.ts";
export { toNibbles, unpackPath } from "./trie/path.ts";
