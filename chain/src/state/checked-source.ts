import { emptyTrieRoot, isSameBytes, keccak256, toLatin1 } from "@stele/eth/node";
import { ChainDamagedError } from "../chain-damaged-error.ts";
import { isTransientFault } from "../storage/transient-fault.ts";
import type { StateSource } from "./state-view.ts";

/** The stored nodes and code of the state. */
export interface StateDatabase {
  readNode(key: string): Uint8Array | undefined;
  readCode(codeHash: Uint8Array): Uint8Array | undefined;
}

/**
 * Reads nodes and code from the file and compares each with its hash.
 * @throws ChainDamagedError if one is missing, does not match, or is on a page that SQLite finds damaged.
 */
export class CheckedSource implements StateSource {
  readonly #database: StateDatabase;

  constructor(database: StateDatabase) {
    this.#database = database;
  }

  findNode(key: string, hash: Uint8Array): string | undefined {
    if (isSameBytes(hash, emptyTrieRoot)) return undefined;
    const node = explained(() => this.#database.readNode(key));
    return toLatin1(check("a node", node, hash));
  }

  findCode(codeHash: Uint8Array): Uint8Array {
    return check(
      "the code of a contract",
      explained(() => this.#database.readCode(codeHash)),
      codeHash,
    );
  }
}

/** Runs a read. Reports an error of SQLite as damage unless the error is temporary: SQLite detects bad pages itself. */
function explained<Result>(read: () => Result): Result {
  try {
    return read();
  } catch (cause) {
    if (isTransientFault(cause)) throw cause;
    const words = cause instanceof Error ? cause.message : String(cause);
    throw new ChainDamagedError(`The state of the chain is damaged: ${words}.`, cause);
  }
}

function check(what: string, bytes: Uint8Array | undefined, hash: Uint8Array): Uint8Array {
  if (bytes !== undefined && isSameBytes(keccak256(bytes), hash)) return bytes;
  throw new ChainDamagedError(
    `The state of the chain is damaged: ${what} ${bytes === undefined ? "is missing" : "does not match its hash"}.`,
  );
}
