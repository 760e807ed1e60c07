import { toHex } from "@stele/eth/node";
import { ChainFileError } from "../chain-file-error.ts";
import type { WorkerSettings } from "../messages.ts";
import type { ChainDatabase } from "../storage/chain-database.ts";
import { type ChainEnd, headFileOf, readHeadFile } from "../storage/head-file.ts";
import { isInMemory } from "../storage/open-database.ts";

type CheckedSettings = Pick<WorkerSettings, "file" | "needsHeadFile">;

/**
 * Compares the chain with its head file, which may be behind the chain but must not name a block that the chain lacks.
 * @throws ChainFileError if the chain lacks the block that the head file names. With `needsHeadFile`, also if a chain with more than block 0 has no intact head
 * file.
 */
export function checkHead(database: ChainDatabase, { file, needsHeadFile }: CheckedSettings): void {
  if (isInMemory(file)) return;
  const known = readHeadFile(file);
  const newest = database.findHead()?.header.number;
  if (known.status === "intact") return checkEnd(database, { file, known, newest });
  // A chain with only block 0 has no head file yet; the first block after that creates one.
  if (!needsHeadFile || known.status === "accepted" || newest === undefined || newest === 0n) return;
  throw new ChainFileError(
    `The head file ${headFileOf(file)} is ${known.status}, and there is no index: nothing shows whether the chain in ${file} still has its newest blocks. ${remedyFor(file)}`,
  );
}

interface Compared {
  readonly file: string;
  readonly known: ChainEnd;
  readonly newest: bigint | undefined;
}

function checkEnd(database: ChainDatabase, { file, known, newest }: Compared): void {
  if (newest === undefined || newest < known.number) {
    const end = newest === undefined ? "it has no block" : `it ends with block ${newest}`;
    throw new ChainFileError(
      `The chain in ${file} has lost blocks and is perhaps damaged or an earlier copy: ${end}, and its head file ${headFileOf(file)} knows block ${known.number}. ${remedyFor(file)}`,
    );
  }
  const head = database.findBlockHead(known.number);
  const hash = head === undefined ? "nothing" : toHex(head.hash);
  if (hash === known.hash) return;
  throw new ChainFileError(
    `The chain in ${file} is another one than before, or damaged: the chain has ${hash} as block ${known.number}, and its head file ${headFileOf(file)} has ${known.hash}. ${remedyFor(file)}`,
  );
}

function remedyFor(file: string): string {
  return [
    "Restore its folder from a backup; delete nothing in the present folder.",
    `To go on with this chain on purpose, without the events of later blocks: echo accept > ${headFileOf(file)}`,
  ].join(" ");
}
