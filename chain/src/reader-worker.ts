import { parentPort, workerData } from "node:worker_threads";
import { emptyTrieRoot } from "@stele/eth/node";
import { Simulator } from "./execution/simulator.ts";
import { READER_ANSWER_BYTES_MAX } from "./limits.ts";
import type { FromReader, ReaderData, ReaderSettings, ToReader } from "./messages.ts";
import { ChainSnapshot, type SnapshotParts } from "./reader/chain-snapshot.ts";
import { HistoryFollower } from "./reader/history-follower.ts";
import { NativeCalls } from "./native-calls.ts";
import { dispatchRead } from "./rpc/dispatch.ts";
import { ProviderRpcError, RPC_ERROR_CODES, toErrorMessage } from "./rpc-error.ts";
import { CheckedSource } from "./state/checked-source.ts";
import { StateView } from "./state/state-view.ts";
import { ChainDatabase } from "./storage/chain-database.ts";
import { openForReading } from "./storage/open-database.ts";

const port = parentPort;
if (port === null) throw new Error("This file runs as a worker thread only: use the reader of an embedded chain.");

function post(message: FromReader): void {
  port?.postMessage(message, []);
}

/** Answers requests from snapshots of the file, one after another. */
class Reader {
  readonly history = new HistoryFollower((after) => post({ kind: "history", after }));
  readonly #parts: SnapshotParts;
  readonly #simulator: Simulator;

  private constructor(database: ChainDatabase, options: ReaderSettings, simulator: Simulator) {
    this.#parts = { database, options, readHistory: (upTo) => this.history.readUpTo(upTo) };
    this.#simulator = simulator;
  }

  static async create(settings: ReaderSettings, nativeCalls: NativeCalls): Promise<Reader> {
    const database = new ChainDatabase(await openForReading(settings.file, nativeCalls));
    const simulator = await Simulator.create({
      chainId: settings.chainId,
      view: new StateView(new CheckedSource(database), emptyTrieRoot),
      readBlockHash: (number) => database.findBlockHead(number)?.hash ?? new Uint8Array(32),
      timeMsMax: settings.callTimeMsMax,
    });
    return new Reader(database, settings, simulator);
  }

  async answer(method: string, params: unknown): Promise<void> {
    try {
      post({ kind: "result", json: await this.#read(method, params) });
    } catch (error) {
      post({ kind: "error", error: toErrorMessage(error) });
    }
  }

  /** The answer as JSON text, so that passing on a long answer costs the other thread only one copy. */
  #read(method: string, params: unknown): Promise<string> {
    return this.#parts.database.readSnapshot(async () => {
      const context = { chain: new ChainSnapshot(this.#parts), simulator: this.#simulator };
      const answer = (await dispatchRead(context, { method, params })) ?? null;
      // V8 ends the whole process if this thread's memory has no room for a text of many megabytes.
      if (charactersIn(answer) > READER_ANSWER_BYTES_MAX) throw tooLarge();
      const json = JSON.stringify(answer);
      if (Buffer.byteLength(json) > READER_ANSWER_BYTES_MAX) throw tooLarge();
      return json;
    });
  }
}

/** The characters of all texts in an answer, without its names and numbers: its JSON is longer. */
function charactersIn(answer: unknown): number {
  if (typeof answer === "string") return answer.length;
  if (typeof answer !== "object" || answer === null) return 0;
  let characters = 0;
  for (const part of Object.values(answer)) characters += charactersIn(part);
  return characters;
}

function tooLarge(): ProviderRpcError {
  return new ProviderRpcError(RPC_ERROR_CODES.responseTooLarge, "response too large");
}

const data = workerData as ReaderData; // The owner starts this file with nothing else.
const nativeCalls = new NativeCalls(data.nativeCalls);
const reader = await Reader.create(data, nativeCalls);
port.on("message", (message: ToReader) => {
  if (message.kind === "history") reader.history.take(message.layers);
  else void reader.answer(message.method, message.params);
});
post({ kind: "ready" });
