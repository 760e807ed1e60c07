import { setMaxListeners } from "node:events";
import { BrokerError, isBrokerError, quote } from "@stele/wire";
import type { TopicName } from "../../../domain/topic-name.ts";
import { createDeferred, type Deferred } from "../../../lib/deferred.ts";
import type { Clock } from "../../../ports/clock.ts";
import { openGas, openingBaseGas, openingGas } from "../write/gas.ts";
import type { RegistryTransactions } from "../write/registry-transactions.ts";
import type { TransactionRoom } from "../write/transaction-room.ts";
import type { Inclusion } from "../write/transaction-state.ts";
import type { OwnWriters } from "./own-writers.ts";
import { openCalldata, type Registry } from "./registry.ts";
import { toReadError } from "../endpoint/rpc-failure.ts";

/** Upper bound on the gas of one transaction that opens topics; EIP-7825 allows 2^24. */
const gasMax = 16_000_000;
/** Upper bound on callers that wait for their topic. */
const openingsWaitingMax = 10_000;

export interface TopicOpenerOptions {
  readonly registry: Registry;
  readonly clock: Clock;
  readonly room: TransactionRoom;
  readonly transactions: RegistryTransactions;
  /** Undefined if new topics are for everyone. */
  readonly writers: OwnWriters | undefined;
}

interface Opening {
  readonly name: TopicName;
  readonly signal: AbortSignal;
  readonly deferred: Deferred<{ readonly blockNumber: number }>;
}

/** Opens topics in batches: calls that arrive together, or during other transactions, share the next transaction. */
export class TopicOpener {
  readonly #options: TopicOpenerOptions;
  /** In the order of the calls. */
  readonly #waiting = new Set<Opening>();
  #underWay = 0;
  #isPumpDue = false;

  constructor(options: TopicOpenerOptions) {
    this.#options = options;
  }

  /**
   * Returns the block of the transaction that opened the topic, or that found it open.
   * @throws BrokerError 100113 if the topic is closed and only other accounts may reopen it; 200202 if aborted before the send; 200300 if too many
   * wait; otherwise as the sender does.
   */
  async open(name: TopicName, signal: AbortSignal): Promise<{ readonly blockNumber: number }> {
    if (signal.aborted) throw notSent();
    if (this.#waiting.size >= openingsWaitingMax) {
      throw new BrokerError("busy", { details: `${this.#waiting.size} topics wait to be opened` });
    }
    const opening: Opening = { name, signal, deferred: createDeferred() };
    this.#waiting.add(opening);
    const leave = (): void => this.#leave(opening);
    signal.addEventListener("abort", leave, { once: true });
    this.#schedule();
    try {
      return await opening.deferred.promise;
    } finally {
      signal.removeEventListener("abort", leave);
    }
  }

  #leave(opening: Opening): void {
    if (this.#waiting.delete(opening)) opening.deferred.reject(notSent());
  }

  /** Waits until pending input is read, so that calls that arrive together share a transaction. */
  #schedule(): void {
    if (this.#isPumpDue) return;
    this.#isPumpDue = true;
    this.#options.clock.soon(() => {
      this.#isPumpDue = false;
      this.#pump();
    });
  }

  #pump(): void {
    const { limits } = this.#options.room;
    while (this.#waiting.size > 0 && this.#underWay < limits.transactionsInFlightMax) void this.#open(this.#take());
  }

  /** The oldest calls, as many as fit into one transaction. */
  #take(): readonly Opening[] {
    const names = new Set<TopicName>();
    const taken: Opening[] = [];
    let gasLeft = Math.min(gasMax, this.#options.room.blockGas) - openingBaseGas;
    for (const opening of this.#waiting) {
      const { name } = opening;
      gasLeft -= names.has(name) ? 0 : openingGas(name);
      if (gasLeft < 0 && names.size > 0) break;
      names.add(name);
      taken.push(opening);
      this.#waiting.delete(opening);
    }
    return taken;
  }

  async #open(openings: readonly Opening[]): Promise<void> {
    const names = [...new Set(openings.map(({ name }) => name))];
    this.#underWay += 1;
    try {
      using callers = new Callers(openings);
      await this.#options.registry.look();
      const inclusion = await this.#send(names, callers.signal);
      await Promise.all(openings.map((opening) => this.#settle(opening, inclusion)));
    } catch (error) {
      const reason = toReadError(error);
      for (const { deferred } of openings) deferred.reject(reason);
    } finally {
      this.#underWay -= 1;
      this.#pump();
    }
  }

  /** Sends one `open`. If the registry reverts it because the sender was just removed from the set, throws the error of `forOpening`. */
  async #send(names: readonly TopicName[], signal: AbortSignal): Promise<Inclusion> {
    const { writers, transactions } = this.#options;
    const data = openCalldata(names, await writers?.forOpening());
    try {
      // For topics that are open, the registry writes no log.
      return await transactions.change({ data, gas: openGas(names), mayLackLogs: true }, signal);
    } catch (error) {
      if (isBrokerError(error, "transactionFailed")) await writers?.forOpening();
      throw error;
    }
  }

  async #settle({ name, deferred }: Opening, { logs, blockNumber }: Inclusion): Promise<void> {
    const address = this.#options.registry.addressOf(name);
    const log = logs.find((one) => one.address === address);
    try {
      if (log === undefined) await this.#confirm(name);
      if (log?.kind === "open-rejected") throw new BrokerError("writerRefused", { details: quote(name) });
      deferred.resolve({ blockNumber });
    } catch (error) {
      deferred.reject(toReadError(error));
    }
  }

  /** Accepts a topic without a log if it was open before, even if it is closed again by now. @throws BrokerError 200202 if it was never opened. */
  async #confirm(name: TopicName): Promise<void> {
    if ((await this.#options.registry.statusOf(name)) !== "never-opened") return;
    throw new BrokerError("transactionFailed", { details: "the registry did not open the topic" });
  }
}

/** The callers of one transaction. A caller that leaves gets TIMEOUT; when the last one leaves, the transaction is given up. */
class Callers implements Disposable {
  readonly #gone = new AbortController();
  readonly #listening = new AbortController();

  constructor(openings: readonly Opening[]) {
    let left = openings.length;
    const go = ({ deferred }: Opening): void => {
      left -= 1;
      if (left === 0) this.#gone.abort();
      else deferred.reject(new BrokerError("transactionTimeout"));
    };
    const { signal } = this.#listening;
    setMaxListeners(0, signal); // One per opening, at most `openingsWaitingMax`.
    for (const opening of openings) opening.signal.addEventListener("abort", () => go(opening), { once: true, signal });
  }

  get signal(): AbortSignal {
    return this.#gone.signal;
  }

  [Symbol.dispose](): void {
    this.#listening.abort();
  }
}

function notSent(): BrokerError {
  return new BrokerError("transactionFailed", { details: "aborted before it was sent" });
}
