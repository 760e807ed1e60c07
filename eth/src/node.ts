// The part of this package that needs Node.js, for buffers and native addons.
export { bloomBits, bloomBytes, hasBloomBit, setBloomBit } from "./bloom.ts";
export {
  emptyBytes,
  fromHex,
  fromInteger,
  isSameBytes,
  padStart,
  toBigint,
  toBuffer,
  toHex,
  toPlain,
  toQuantity,
  trimZeros,
} from "./bytes.ts";
export { cryptoInUse } from "./crypto-in-use.ts";
export type { Hex } from "./hex-text.ts";
export { keccak256 } from "./keccak/keccak.ts";
export { keccakInto } from "./keccak/portable-keccak.ts";
export { fromLatin1, toLatin1 } from "./latin1.ts";
export { encodeReceipt, type ReceiptFieldsLog } from "./receipt.ts";
export { decodeRlp } from "./rlp/decode-rlp.ts";
export { encodeRlp, listHeader, type RlpItem } from "./rlp/encode-rlp.ts";
export { headerBytes } from "./rlp/rlp-writer.ts";
export {
  type Fees,
  type SignedTransaction,
  signTransaction,
  type UnsignedTransaction,
} from "./sign-transaction.ts";
export { curve } from "./signature/curve.ts";
export { isLowS, recoverPublicKey, type Signature, toAddressBytes } from "./signature/signature.ts";
export { Signer } from "./signature/signer.ts";
export { toPathString } from "./trie/encode.ts";
export { type ChildNode, decodeNode, type TrieNode } from "./trie/node.ts";
export { emptyTrieRoot, OrderedTrie, orderedRoot } from "./trie/ordered-trie.ts";
export { toNibbles } from "./trie/path.ts";
export { proveTrie, readTrie } from "./trie/read.ts";
export { type NodeTextReader, replaceInTrie } from "./trie/replace.ts";
export { type NodeReader, type TrieChange, type TrieUpdate, updateTrie } from "./trie/update.ts";
