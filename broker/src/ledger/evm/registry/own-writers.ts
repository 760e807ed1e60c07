import { BrokerError } from "@stele/wire";
import type { Address } from "../../../domain/topic.ts";
import type { Logger } from "../../../lib/logger.ts";
import { pause } from "../../../lib/pause.ts";
import { ReportedTrouble } from "../../../lib/reported-trouble.ts";
import { SharedCalls } from "../../../lib/shared-calls.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { WriterSet } from "../../../ports/group-records.ts";
import type { BlockTracker } from "../read/block-tracker.ts";
import type { HeadWatcher } from "../read/head-watcher.ts";
import { signatureOf } from "../read/parse-log.ts";
import { writersGas } from "../write/gas.ts";
import type { RegistryTransactions } from "../write/registry-transactions.ts";
import type { Inclusion } from "../write/transaction-state.ts";
import { addWriterCalldata, createWritersCalldata, type Registry } from "./registry.ts";
import type { Rpc } from "../endpoint/rpc.ts";
import { isUnanswered, RpcFailure } from "../endpoint/rpc-failure.ts";
import type { GroupMemory } from "./settle-registry.ts";

/** Pause between two searches for signers of the group that are not in its set yet, in milliseconds. */
const lookPauseMs = 2_000;
/** Upper bound on the members that a new set of writers starts with; further ones are added one by one. */
const accountsMax = 64;

const created = signatureOf("WritersCreated");

export interface OwnWritersOptions {
  readonly rpc: Rpc;
  readonly registry: Registry;
  /** The signer's address. */
  readonly account: Address;
  /** Further accounts that may write, besides the signers of the group's nodes. */
  readonly accounts: readonly Address[];
  readonly memory: GroupMemory;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly heads: HeadWatcher;
  readonly tracker: BlockTracker;
  readonly transactions: RegistryTransactions;
}

/**
 * The accounts that may write to the topics that a group opens. The node that opens the first topic creates the set and owns it. Each member adds the
 * signers of the group's other nodes.
 */
export class OwnWriters {
  readonly #options: OwnWritersOptions;
  readonly #trouble: ReportedTrouble;
  readonly #stopping = new AbortController();
  /** Known members. Of these, only this account is checked again. */
  readonly #members = new Set<Address>();
  #set: WriterSet | undefined;
  /** Concurrent calls find or create the set once. */
  readonly #settling = new SharedCalls<"set", WriterSet>();
  #watching: Promise<void> | undefined;
  #warning: string | undefined;

  constructor(options: OwnWritersOptions) {
    this.#options = options;
    this.#trouble = new ReportedTrouble(
      options.logger,
      "set of writers not read, trying again",
      "set of writers read again",
    );
  }

  /** Why this node may not write to the group's topics; undefined if it may, as far as known. */
  get warning(): string | undefined {
    return this.#warning;
  }

  get facts(): Readonly<Record<string, number>> {
    return this.#set === undefined ? {} : { writers: this.#set.number };
  }

  start(): void {
    this.#watching = this.#watch();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#watching;
  }

  /**
   * The set for new topics. Asks the registry each time: another member may have removed this account, and after a reorg the number may belong to somebody
   * else's set. In the second case, the group creates a new set.
   * @throws BrokerError 100113 if this account is not a member, 200205 if the chain is behind; RpcFailure; otherwise as RegistryTransactions does.
   */
  async forOpening(): Promise<number> {
    const set = await this.#settling.run("set", () => this.#findOrCreate());
    await this.#checkOwn(set);
    if (this.#warning !== undefined) throw new BrokerError("writerRefused", { details: this.#warning });
    return set.number;
  }

  /** Two nodes that create a set at once use the one that is remembered first. */
  async #findOrCreate(): Promise<WriterSet> {
    const { memory, logger, account } = this.#options;
    if (this.#set !== undefined && (await this.#isThere(this.#set))) return this.#set;
    const known = memory.saveWriters === undefined ? await this.#findOnChain() : await this.#recall();
    if (known !== undefined && (await this.#isThere(known))) return this.#use(known);
    if (known !== undefined)
      logger.warn("set of writers is no longer on the chain, creating another", {
        writers: known.number,
        owner: known.owner,
      });
    const made = await this.#create();
    const kept = (await memory.saveWriters?.(made, known)) ?? made;
    logger.info("set of writers created", {
      writers: made.number,
      kept: kept.number,
      former: known?.number,
      signer: account,
    });
    return this.#use(kept);
  }

  #use(set: WriterSet): WriterSet {
    if (set.number !== this.#set?.number || set.owner !== this.#set.owner) this.#members.clear();
    this.#set = set;
    return set;
  }

  /** Whether the chain has the set. @throws BrokerError 200205 if the chain lacks the set, but is behind and may have it later. */
  async #isThere({ number, owner }: WriterSet): Promise<boolean> {
    const { registry, tracker } = this.#options;
    if ((await registry.ownerOf(number)) === owner) return true;
    if (tracker.findShortage() !== undefined)
      throw new BrokerError("chainUnreachable", {
        details: `the chain is behind and has no set of writers ${number} yet`,
      });
    return false;
  }

  async #create(): Promise<WriterSet> {
    const { account } = this.#options;
    const accounts = (await this.#listOthers()).slice(0, accountsMax);
    const { blockNumber } = await this.#send(createWritersCalldata(accounts), writersGas(accounts.length));
    const made = (await this.#readCreated(blockNumber, blockNumber)).at(-1);
    if (made !== undefined) return made;
    throw new BrokerError("transactionFailed", {
      details: `block ${blockNumber} has no set of writers that ${account} created`,
    });
  }

  async #recall(): Promise<WriterSet | undefined> {
    return (await this.#options.memory.find())?.writers;
  }

  /** The oldest of the signer's sets. If the endpoint refuses to search all blocks, the group creates another set. */
  async #findOnChain(): Promise<WriterSet | undefined> {
    try {
      return (await this.#readCreated(0, this.#options.heads.latest.number)).at(0);
    } catch (error) {
      if (!(error instanceof RpcFailure) || isUnanswered(error)) throw error;
      this.#options.logger.warn("endpoint refused to search for the set of writers, creating one", { error });
      return undefined;
    }
  }

  async #readCreated(from: number, to: number): Promise<readonly WriterSet[]> {
    const { rpc, registry, account } = this.#options;
    const filter = { address: registry.address, signatures: [created], sender: account };
    const { logs } = await rpc.logs({ from, to }, filter);
    return logs.map(({ topics }) => ({ number: Number(topics[1]), owner: account }));
  }

  async #listOthers(): Promise<readonly Address[]> {
    const { memory, account, accounts } = this.#options;
    const signers = (await memory.listSigners?.()) ?? [];
    return [...new Set([...accounts, ...signers])].filter((other) => other !== account);
  }

  async #watch(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        await this.#look();
        this.#trouble.done();
      } catch (error) {
        this.#trouble.failed(error);
      }
      await pause(clock, lookPauseMs, signal);
    }
  }

  async #look(): Promise<void> {
    const set = this.#set ?? (await this.#recall());
    if (set === undefined) return;
    const missing = (await this.#listOthers()).filter((signer) => !this.#members.has(signer));
    if (missing.length === 0 && this.#members.has(this.#options.account)) return;
    if (!(await this.#isThere(set))) return;
    await this.#checkOwn(this.#use(set));
    if (this.#warning !== undefined) return;
    for (const signer of missing) {
      if (this.#stopping.signal.aborted) return;
      await this.#add(set, signer);
    }
  }

  async #add({ number }: WriterSet, signer: Address): Promise<void> {
    const { registry, logger } = this.#options;
    if (!(await registry.isMember(number, signer))) {
      await this.#send(addWriterCalldata(number, signer), writersGas(1));
      logger.info("writer added", { writers: number, signer });
    }
    this.#members.add(signer);
  }

  /** Never aborts: the sender's deadline ends the call. */
  #send(data: Buffer, gas: number): Promise<Inclusion> {
    return this.#options.transactions.change({ data, gas }, new AbortController().signal);
  }

  async #checkOwn({ number: set, owner }: WriterSet): Promise<void> {
    const { registry, account, logger } = this.#options;
    const isMember = owner === account || (await registry.isMember(set, account));
    if (isMember) this.#members.add(account);
    else this.#members.delete(account);
    if (!isMember && this.#warning === undefined)
      logger.warn("signer may not write to the group's topics", { signer: account, writers: set });
    this.#warning = isMember ? undefined : notYet(set, account);
  }
}

function notYet(set: number, account: Address): string {
  return `the signer ${account} may not write to this group's topics yet: it is not in the registry's set of writers ${set}. A running node of the group adds it within seconds; the owner of a member's key can add it with setWriter`;
}
