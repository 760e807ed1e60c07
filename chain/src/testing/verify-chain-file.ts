import { createBlockHeaderFromRLP } from "@ethereumjs/block";
import { createCustomCommon, Hardfork, Mainnet } from "@ethereumjs/common";
import { createMPT } from "@ethereumjs/mpt";
import { RLP } from "@ethereumjs/rlp";
import { DatabaseSync } from "@photostructure/sqlite";
import {
  type ChildNode,
  decodeNode,
  emptyTrieRoot,
  fromInteger,
  keccak256,
  toHex,
  toPathString,
} from "@stele/eth/node";
import { expect } from "vitest";
import { encodeHeader } from "../blocks/header.ts";
import { encodeReceipt } from "../blocks/receipt.ts";
import { decodeAccount } from "../state/account.ts";
import { accountNodeKey, storageNodeKey } from "../state/state-view.ts";
import { ChainDatabase } from "../storage/chain-database.ts";

/** Recomputes the hash and the roots of transactions and receipts of each block, and the hash of each node of the newest state. */
export async function verifyChainFile(file: string): Promise<void> {
  const sqlite = new DatabaseSync(file);
  try {
    const check = sqlite.prepare("PRAGMA integrity_check").get() as Record<string, string>;
    expect(check["integrity_check"]).toBe("ok");
    const database = new ChainDatabase(sqlite);
    database.loadUnsaved();
    database.save();
    const last = database.findHead();
    if (last === undefined) throw new Error("The chain has no block.");
    for (let number = 0n; number <= last.header.number; number += 1n) await verifyBlock(database, number);
    const nodes = verifyState(database, last.header.stateRoot);
    const { count } = sqlite.prepare("SELECT count(*) AS count FROM nodes").get() as { count: number };
    expect(count, "exactly the nodes that the state needs are stored").toBe(nodes);
  } finally {
    sqlite.close();
  }
}

async function verifyBlock(database: ChainDatabase, number: bigint): Promise<void> {
  const head = database.findBlockHead(number);
  if (head === undefined) throw new Error(`Block ${number} is missing.`);
  const common = createCustomCommon({ chainId: 1 }, Mainnet, { hardfork: Hardfork.Cancun });
  const reference = createBlockHeaderFromRLP(encodeHeader(head.header), {
    common,
    skipConsensusFormatValidation: true,
  });
  expect(toHex(reference.hash())).toBe(toHex(head.hash));
  if (number > 0n)
    expect(toHex(head.header.parentHash)).toBe(toHex(database.findBlockHead(number - 1n)?.hash ?? new Uint8Array(0)));
  const executed = database.readExecuted(number);
  const raws = executed.map(({ transaction }) => transaction.raw);
  const receipts = executed.map(({ transaction, receipt }) => encodeReceipt(receipt, transaction.type));
  expect(toHex(await referenceRoot(raws))).toBe(toHex(head.header.transactionsRoot));
  expect(toHex(await referenceRoot(receipts))).toBe(toHex(head.header.receiptsRoot));
}

async function referenceRoot(items: readonly Uint8Array[]): Promise<Uint8Array> {
  const trie = await createMPT();
  for (const [index, item] of items.entries()) await trie.put(RLP.encode(fromInteger(BigInt(index))), item);
  return trie.root();
}

/** Walks the whole state by its hashes and counts its nodes. */
function verifyState(database: ChainDatabase, root: Uint8Array): number {
  return walk({ kind: "hash", hash: root }, "", {
    read: (path) => database.readNode(accountNodeKey(path)),
    leaf: (path, value) => verifyStorage(database, path, decodeAccount(value).storageRoot),
  });
}

function verifyStorage(database: ChainDatabase, path: string, root: Uint8Array): number {
  if (toHex(root) === toHex(emptyTrieRoot)) return 0;
  const nibbles = Buffer.from(path, "latin1");
  const addressHash = Uint8Array.from(
    { length: 32 },
    (_, index) => ((nibbles[index * 2] ?? 0) << 4) | (nibbles[index * 2 + 1] ?? 0),
  );
  return walk({ kind: "hash", hash: root }, "", {
    read: (inner) => database.readNode(storageNodeKey(addressHash, inner)),
    leaf: () => 0,
  });
}

interface Walk {
  read(path: string): Uint8Array | undefined;
  leaf(path: string, value: Uint8Array): number;
}

function walk(node: ChildNode, path: string, options: Walk): number {
  if (node.kind === "hash") {
    const encoded = options.read(path);
    if (encoded === undefined)
      throw new Error(`A node of the state is missing at ${Buffer.from(path, "latin1").toString("hex")}.`);
    expect(toHex(keccak256(encoded))).toBe(toHex(node.hash));
    return 1 + walk(decodeNode(encoded), path, options);
  }
  if (node.kind === "leaf") return options.leaf(path + toPathString(node.path), node.value);
  if (node.kind === "extension") return walk(node.child, path + toPathString(node.path), options);
  return node.children.reduce(
    (count, child, index) =>
      count + (child === undefined ? 0 : walk(child, path + String.fromCharCode(index), options)),
    0,
  );
}
