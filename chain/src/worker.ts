import { parentPort, workerData } from "node:worker_threads";
import { ChainDamagedError } from "./chain-damaged-error.ts";
import { ChainFileError } from "./chain-file-error.ts";
import { Chain } from "./chain/chain.ts";
import { BlockDamagedError } from "./chain/verified-blocks.ts";
import { openChainDatabase } from "./chain/open-chain-database.ts";
import { Simulator } from "./execution/simulator.ts";
import type { FromWorker, ToWorker, WorkerData, WorkerSettings } from "./messages.ts";
import { NativeCalls } from "./native-calls.ts";
import { OwnerFeed } from "./owner-feed.ts";
import type { RpcContext } from "./rpc/context.ts";
import { dispatch } from "./rpc/dispatch.ts";
import { Filters } from "./rpc/filters.ts";
import { Subscriptions } from "./rpc/subscriptions.ts";
import { toErrorMessage } from "./rpc-error.ts";
import { type CloseOptions, explainFault, explainOpening } from "./storage/open-database.ts";
import { isTransientFault } from "./storage/transient-fault.ts";

const port = parentPort;
if (port === null) throw new Error("This file runs as a worker thread only: use startEmbeddedChain.");

function post(message: FromWorker, handedOver: readonly ArrayBuffer[] = []): void {
  port?.postMessage(message, handedOver);
}

interface WorkerContext extends RpcContext {
  readonly feed: OwnerFeed;
}

async function start(settings: WorkerSettings, calls: NativeCalls): Promise<WorkerContext> {
  const feed = new OwnerFeed(post);
  const subscriptions = new Subscriptions((subscription, result) =>
    post({ kind: "notification", subscription, result }),
  );
  const chain = await Chain.open(await openChainDatabase(settings, calls), settings, {
    blockSealed: (block, receipts) => {
      feed.reportBlock(block, receipts);
      subscriptions.reportBlock(block);
    },
    sealingEnded: () => feed.reportAccepted(),
    transactionPooled: (transaction) => subscriptions.reportPending(transaction),
    faultChanged: (fault) => post({ kind: "fault", message: fault?.message }),
    mismatchFound: ({ message }) => post({ kind: "mismatch", message }),
    damageFound: ({ message }) => post({ kind: "state-damage", message }),
  });
  const readBlockHash = (number: bigint): Uint8Array => chain.blocks.findHead(number)?.hash ?? new Uint8Array(32);
  const { chainId, callTimeMsMax: timeMsMax } = settings;
  const simulator = await Simulator.create({ chainId, view: chain.nodes.head(), readBlockHash, timeMsMax });
  return { chain, simulator, filters: new Filters(chain), subscriptions, feed };
}

function fail(id: number, error: unknown): void {
  // A damaged old block does not stop new ones. A damaged state does.
  const isOfState = error instanceof ChainDamagedError && !(error instanceof BlockDamagedError);
  if (isOfState) post({ kind: "state-damage", message: error.message });
  post({ kind: "error", id, error: toErrorMessage(error) });
}

async function answer(
  context: RpcContext,
  { id, method, params }: Extract<ToWorker, { kind: "request" }>,
): Promise<void> {
  try {
    post({ kind: "result", id, result: await dispatch(context, { method, params }) });
  } catch (error) {
    fail(id, error);
  }
}

function submit({ chain, feed }: WorkerContext, { id, raw }: Extract<ToWorker, { kind: "submit" }>): void {
  try {
    chain.submit(raw);
    feed.accept(id);
  } catch (error) {
    fail(id, error);
  }
}

function readBlocks({ chain }: WorkerContext, { id, range }: Extract<ToWorker, { kind: "blocks" }>): void {
  try {
    const blocks = chain.readBlocks(range);
    // `encodeCommittedBlock` returns an array that is alone in its buffer, so the buffer can be transferred.
    post(
      { kind: "result", id, result: blocks },
      blocks.map(({ buffer }) => buffer as ArrayBuffer),
    );
  } catch (error) {
    if (error instanceof BlockDamagedError) post({ kind: "damage", id, message: error.message });
    else fail(id, error);
  }
}

function answerWith({ id }: { readonly id: number }, answer: () => unknown): void {
  try {
    post({ kind: "result", id, result: answer() });
  } catch (error) {
    post({
      kind: "error",
      id,
      error: toErrorMessage(isTransientFault(error) ? explainFault(data.file, error) : error),
    });
  }
}

function receive(context: WorkerContext, message: ToWorker): void {
  switch (message.kind) {
    case "request":
      return void answer(context, message);
    case "submit":
      return submit(context, message);
    case "blocks":
      return readBlocks(context, message);
    case "check":
      return answerWith(message, () => context.chain.checkBlocks(message.range));
    case "check-index-entries":
      return answerWith(message, () => context.chain.checkIndexEntries(message.isFirst));
    case "repair":
      return answerWith(message, () => context.chain.repairBlock(message.block));
    case "check-state":
      return answerWith(message, () => context.chain.checkState(message.from));
    case "hold-file":
      return answerWith(message, () => context.chain.holdFile());
    case "release-file":
      return context.chain.releaseFile();
    case "feed":
      return context.feed.turnOn();
    case "history":
      return post({ kind: "result", id: message.id, result: context.chain.nodes.shareHistory(message.after) });
    case "stop":
      return void stop(context, message);
  }
}

/** Closes the port in any case, so that the owner never waits for a thread that cannot end. */
async function stop({ chain }: RpcContext, options: CloseOptions): Promise<void> {
  try {
    await chain.stop(options);
  } catch (error) {
    post({ kind: "fault", message: error instanceof Error ? error.message : String(error) });
  } finally {
    port?.close();
  }
}

function toRefusal(file: string, error: unknown): ChainFileError {
  if (error instanceof ChainFileError) return error;
  if (isTransientFault(error)) return explainOpening(file, error);
  // The file could be opened, so the failure comes from its content.
  const reason = (error instanceof Error ? error.message : String(error)).replace(/\.?$/, ".");
  return new ChainFileError(`The chain file ${file} is damaged: ${reason} Restore its folder from a backup.`, {
    cause: error,
  });
}

const data = workerData as WorkerData; // The owner starts this file with nothing else.
const nativeCalls = new NativeCalls(data.nativeCalls);
try {
  const context = await start(data, nativeCalls);
  port.on("message", (message: ToWorker) => receive(context, message));
  post({ kind: "ready" });
} catch (error) {
  nativeCalls.noneFollow(); // If the addon did not load: an owner that exits at once need not wait.
  post({ kind: "refused", message: toRefusal(data.file, error).message });
  port.close();
}
