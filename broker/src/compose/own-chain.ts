import { basename } from "node:path";
import {
  type EmbeddedChain,
  headFileOf,
  readHeadFile,
  startEmbeddedChain,
  TRANSACTION_BYTES_MAX_DEFAULT,
} from "@stele/chain";
import { publishGas, topicRegistryCode } from "@stele/contracts";
import { Signer } from "@stele/eth/node";
import { isBrokerError } from "@stele/wire";
import { chainFile, type FolderOptions, nothingChanged, storeFile } from "./folder.ts";
import { embeddedKey } from "./signer.ts";
import { groupsOf } from "../config/derived.ts";
import type { Config } from "../config/settings.ts";
import type { Logger } from "../lib/logger.ts";
import { isMoved, LostFileError, noteFile } from "../lib/system/open-file.ts";
import type { IndexFinding } from "../store/sql/index/index-tables.ts";

/** The embedded chain gets at least this long, in milliseconds, to finish its block and close its file, even if the deadline of the stop has passed. */
const chainStopMsMin = 1_000;

export interface ChainDependencies extends FolderOptions {
  /** See EmbeddedChainOptions. */
  readonly needsHeadFile: boolean;
  /** Returns how long the stopping broker may still take. */
  readonly graceMs: () => number;
}

/** Starts the embedded chain; `cleanup` stops it. */
export async function startEmbedded(
  config: Config,
  { folder, logger, cleanup, onFailure, hasFailed, graceMs, needsHeadFile }: ChainDependencies,
) {
  const file = chainFile(folder);
  const privateKey = embeddedKey({ folder, logger });
  const before = noteFile(file); // Checking a long chain takes a while.
  const chain = await startEmbeddedChain({
    file,
    chainId: config.chainId,
    genesisAccounts: [new Signer(privateKey).address],
    transactionBytesMax: Math.max(TRANSACTION_BYTES_MAX_DEFAULT, transactionBytes(config)),
    checkInterval: config.chainCheckInterval,
    registryCode: { ...topicRegistryCode, publishGas },
    unsavedBytesMax: config.chainUnsavedBytesMax,
    needsHeadFile,
  });
  const opened = before ?? noteFile(file);
  cleanup.add(async () => {
    await chain.stop(Math.max(chainStopMsMin, graceMs()), { keepsLog: hasFailed() });
    // A store in the same folder says so, too, but with `coordination: none` there is none.
    if (opened !== undefined && isMoved(opened)) throw new LostFileError(file);
  }, "embedded chain");
  watchChain(chain, { file, logger, onFailure });
  return { chain, privateKey, opened };
}

/**
 * Checks that the embedded chain, if there is one, still has every event. Call it before a damaged index is emptied at the start: its batches may be the only
 * copy of the events of a damaged block. @throws Error that names both files and says what to do; the reason of `signal`.
 */
export async function checkBeforeEmptying(
  chain: Pick<EmbeddedChain, "checkBlocks"> | undefined,
  finding: IndexFinding,
  { folder, logger, signal }: Pick<FolderOptions, "folder" | "logger"> & { readonly signal: AbortSignal | undefined },
): Promise<void> {
  if (chain === undefined) return;
  logger.warn("index damaged, checking each block of the chain before the index is rebuilt", {
    file: storeFile(folder),
    ...finding,
  });
  let blocks = 0;
  for (let isMore = true; isMore; ) {
    signal?.throwIfAborted();
    const { upTo, damaged } = await chain.checkBlocks({ from: blocks, to: Number.MAX_SAFE_INTEGER });
    const [first] = damaged;
    if (first !== undefined) throw new Error(bothDamaged(folder, first.reason));
    isMore = upTo >= blocks;
    blocks = upTo + 1;
  }
  const head = headFileOf(chainFile(folder));
  const { status } = readHeadFile(chainFile(folder));
  // Only the index and the head file show how long the chain was, and the index is damaged.
  if (blocks > 1 && (status === "missing" || status === "damaged")) {
    const reason = `${basename(head)} is ${status}, so that nothing shows whether the chain has its newest blocks.`;
    throw new Error(`${bothDamaged(folder, reason)} If the chain is known to be whole: echo accept > ${head}`);
  }
}

/** A backup of the chain alone ends before the newest blocks that the index and the head file know, so the broker would refuse it. */
const repairFolder = "Repair it, or restore the data folder from a backup, as docs/backup.md#repair says.";

function bothDamaged(folder: FolderOptions["folder"], reason: string): string {
  const [store, chain] = [storeFile(folder), chainFile(folder)];
  return [
    `${store} is damaged: the broker would have to rebuild the index from ${chain}, which may not have every event. ${reason}`,
    `Repair it with ${basename(store)} of a backup, as docs/backup.md#repair says, or restore the data folder from a backup. ${nothingChanged}`,
  ].join(" ");
}

/**
 * Explains why a start has failed. If the embedded chain gives wrong answers, the operator has no endpoint to check, only the chain's file. A BrokerError
 * is about the embedded chain, because other groups wait for their chains instead of failing.
 */
export function explainStart(error: unknown, file: string | undefined): unknown {
  if (file === undefined || !isBrokerError(error)) return error;
  const message = `The chain in ${file} does not return what was written to it, and is perhaps damaged: ${error.message}. ${repairFolder}`;
  return new Error(message, { cause: error });
}

function watchChain(
  chain: EmbeddedChain,
  options: { readonly file: string; readonly logger: Logger; readonly onFailure: FolderOptions["onFailure"] },
): void {
  const { file, logger, onFailure } = options;
  chain.on("fault", (cause) => {
    if (cause === undefined) return;
    onFailure(unwritable(file, cause));
  });
  chain.on("damage", (cause) => {
    const message = `the chain's file ${file} is damaged: ${cause.message} ${repairFolder}`;
    onFailure(new Error(message, { cause }));
  });
  chain.on("mismatch", (error) => logger.error("embedded chain disagreed with EthereumJS", { error }));
  chain.on("disconnect", onFailure);
}

/** The error for a chain whose next block SQLite could not write. */
export function unwritable(file: string, cause: Error): Error {
  const message = `chain ${file} cannot be written: ${cause.message}; ${remedyFor(cause.message)}, then start again`;
  return new Error(message, { cause });
}

function remedyFor(reason: string): string {
  if (/database (table )?is locked/.test(reason)) return "end the other program that has the file open";
  if (!reason.includes("malformed")) return "check the disk and its free space";
  return "run `stele scrub`, which can repair the chain's index, or restore the data folder from a backup, as docs/backup.md#repair says";
}

/** Bytes of the longest transaction that the settings allow, with room for the encoding of each batch and event. */
function transactionBytes(config: Config): number {
  const eventBytesMax = config.contentBytesMax + config.extensionsBytesMax;
  const embedded = groupsOf(config).find(({ endpoints }) => endpoints === "embedded");
  return 2 * Math.max(embedded?.transactionBytesMax ?? 0, eventBytesMax);
}
