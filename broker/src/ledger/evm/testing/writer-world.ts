import { fromHex, type Hex, keccak256, type SignedTransaction, Signer, signTransaction, toHex } from "@stele/eth/node";
import { decodeEvents } from "@stele/wire";
import { defaultGroupId } from "../../../domain/group-id.ts";
import type { Address, Hash } from "../../../domain/topic.ts";
import { parseTopicName } from "../../../domain/topic-name.ts";
import { silentLogger } from "../../../lib/logger.ts";
import { createSystemClock } from "../../../lib/system/clock.ts";
import type { Journal, JournalEntry } from "../../../ports/journal.ts";
import type { BatchOutcome } from "../../../ports/ledger.ts";
import { toOutgoingBatch } from "../../../ports/testing/outgoing-batch.ts";
import type { RpcLog } from "../endpoint/rpc-log.ts";
import { EvmLedger } from "../evm-ledger.ts";
import type { EvmLedgerOptions } from "../evm-ledger-options.ts";
import { logSignatures, parseLog } from "../read/parse-log.ts";
import { type Anvil, startAnvil } from "./anvil.ts";
import { testKey, testLimits } from "./evm-harness.ts";
import { InterceptedProvider } from "./intercepted-provider.ts";

const unaborted = new AbortController().signal;
const topic = parseTopicName("writer");

/** A started ledger that publishes single events to the world's topic. */
export interface Writer {
  readonly ledger: EvmLedger;
  append(text: string, signal?: AbortSignal): Promise<BatchOutcome | undefined>;
  /** Stops the ledger at once: pending transactions stay in the journal. */
  abandon(): Promise<void>;
}

/** A journal that survives restarts of ledgers within a test. */
export class TestJournal implements Journal {
  readonly #entries = new Map<string, JournalEntry>();

  async recordTransactions(entries: readonly JournalEntry[]): Promise<void> {
    for (const entry of entries) this.#entries.set(`${entry.sender} ${entry.nonce}`, entry);
  }

  async listTransactions(_: string, sender: Address): Promise<readonly JournalEntry[]> {
    const own = [...this.#entries.values()].filter((entry) => entry.sender === sender);
    return own.toSorted((left, right) => left.nonce - right.nonce);
  }

  async removeTransactions(_: string, sender: Address, nonces: readonly number[]): Promise<void> {
    for (const nonce of nonces) this.#entries.delete(`${sender} ${nonce}`);
  }
}

/** One anvil, one key, one journal and a connection that the test can disturb, for the writer's tests. */
export class WriterWorld {
  readonly provider: InterceptedProvider;
  readonly journal = new TestJournal();
  readonly privateKey: Uint8Array;
  #anvil: Anvil;
  #registryAddress: Address | undefined;
  #topicAddress: Address | undefined;

  private constructor(anvil: Anvil, key: string) {
    this.#anvil = anvil;
    this.privateKey = testKey(key);
    this.provider = new InterceptedProvider({
      request: async (request) => {
        return this.#anvil.provider.request(request);
      },
    });
  }

  static async start(options: readonly string[] = []): Promise<WriterWorld> {
    const world = new WriterWorld(await startAnvil(options), "writer");
    await world.fund(world.privateKey);
    return world;
  }

  /** A world with its own key and registry on another world's chain. It ends with that world. */
  static async join(other: WriterWorld, key: string): Promise<WriterWorld> {
    const world = new WriterWorld(other.#anvil, key);
    await world.fund(world.privateKey);
    return world;
  }

  async fund(privateKey: Uint8Array): Promise<void> {
    await this.ask("anvil_setBalance", new Signer(privateKey).address, "0xffffffffffffffffffff");
  }

  /** Asks anvil directly, past the test's interceptors. */
  async ask(method: string, ...params: readonly unknown[]): Promise<unknown> {
    return this.#anvil.provider.request({ method, params });
  }

  async createWriter(options: Partial<EvmLedgerOptions> = {}): Promise<Writer> {
    const ledger = new EvmLedger({
      groupId: defaultGroupId,
      provider: this.provider,
      privateKey: this.privateKey,
      journal: this.journal,
      clock: createSystemClock(),
      logger: silentLogger,
      pollMs: 20,
      limits: testLimits,
      ...options,
    });
    await ledger.start();
    return {
      ledger,
      append: async (text, signal = unaborted) => {
        const events = [{ content: Buffer.from(text), extensions: [] }];
        const batch = toOutgoingBatch({ topic, address: await this.topicAddress(), events });
        return (await ledger.append([batch], signal))[0];
      },
      abandon: async () => ledger.stop(AbortSignal.abort()),
    };
  }

  /** Starts a writer and opens the topic. Call it while the chain makes blocks by itself. */
  async createFirstWriter(options: Partial<EvmLedgerOptions> = {}): Promise<Writer> {
    const writer = await this.createWriter(options);
    this.#registryAddress = writer.ledger.registryAddress;
    await writer.ledger.openTopic(topic, unaborted);
    await this.topicAddress();
    return writer;
  }

  get registryAddress(): Address {
    if (this.#registryAddress === undefined) throw new Error("no registry is deployed");
    return this.#registryAddress;
  }

  async topicAddress(): Promise<Address> {
    if (this.#topicAddress !== undefined) return this.#topicAddress;
    for (const log of await this.#logs()) {
      const parsed = parseLog(log, this.registryAddress);
      if (parsed?.kind === "topic-opened") this.#topicAddress = parsed.address;
    }
    if (this.#topicAddress === undefined) throw new Error("no topic is open");
    return this.#topicAddress;
  }

  /** The topic's events on the chain, in order. @throws Error if their sequences have a gap. */
  async published(): Promise<string[]> {
    const events: string[] = [];
    const address = await this.topicAddress();
    for (const log of await this.#logs()) {
      const parsed = parseLog(log, this.registryAddress);
      if (parsed?.kind !== "events-published" || parsed.address !== address) continue;
      if (parsed.firstSequence !== events.length + 1) throw new Error(`a gap before sequence ${parsed.firstSequence}`);
      for (const { content } of decodeEvents(parsed.events)) events.push(Buffer.from(content).toString());
    }
    return events;
  }

  async transactionCount(): Promise<number> {
    return Number(await this.ask("eth_getTransactionCount", new Signer(this.privateKey).address, "latest"));
  }

  /** Signs a transaction with the ledger's key, the next nonce that no block has used, and higher fees than the ledger's. */
  async signForeign(): Promise<SignedTransaction> {
    const signer = new Signer(this.privateKey);
    const fees = { kind: "eip1559", maxFeePerGas: 900_000_000_000n, maxPriorityFeePerGas: 90_000_000_000n } as const;
    const call = { gas: 21_000, to: signer.address, data: new Uint8Array(0) };
    const chainId = Number(await this.ask("eth_chainId"));
    return signTransaction({ chainId, nonce: await this.transactionCount(), fees, ...call }, signer);
  }

  /** How many transactions wait in the pool, executable or behind a gap. */
  async poolSize(): Promise<number> {
    const { pending, queued } = (await this.ask("txpool_status")) as { pending: Hex; queued: Hex }; // Geth's txpool namespace.
    return Number(pending) + Number(queued);
  }

  /**
   * Stops the chain under load and starts another one in its place. The pool is lost. No block is made during the stop:
   * anvil writes accounts and blocks one after the other, and a block between them would be missing after the start.
   */
  async replaceChain(options: readonly string[], whileDown: () => Promise<void> = async () => {}): Promise<void> {
    await this.ask("evm_setAutomine", false);
    await this.ask("evm_mine"); // Answers once the block that was under way is finished.
    await this.#anvil.stop();
    await whileDown();
    this.#anvil = await startAnvil(options);
  }

  async stop(): Promise<void> {
    await this.#anvil.stop();
  }

  async #logs(): Promise<readonly RpcLog[]> {
    const filter = { fromBlock: "0x0", toBlock: "latest", topics: [logSignatures] };
    return (await this.ask("eth_getLogs", filter)) as readonly RpcLog[]; // Logs, by the specification.
  }
}

export function hashOf(raw: Hex): Hash {
  return toHex(keccak256(fromHex(raw)));
}

/** Repeats until the condition holds; other work runs in between. */
export async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setImmediate(resolve));
}
