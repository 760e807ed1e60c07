import { Signer } from "@stele/eth/node";
import { BrokerError, isBrokerError, quote } from "@stele/wire";
import type { BlockRange } from "../../domain/block-range.ts";
import type { GroupId } from "../../domain/group-id.ts";
import type { Address, Hash } from "../../domain/topic.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { ChainCheck } from "../../ports/chain-check.ts";
import type { ChainProof, ProofPlace } from "../../ports/chain-proof.ts";
import type {
  AppendOptions,
  BatchOutcome,
  BatchPlace,
  BatchStart,
  BlockRef,
  CommittedBatch,
  Ledger,
  LedgerBlock,
  LedgerLimits,
  LedgerStartOptions,
  LedgerStep,
  LedgerView,
  OutgoingBatch,
  TopicOpening,
} from "../../ports/ledger.ts";
import { pause } from "../../lib/pause.ts";
import { createPatientProvider } from "./endpoint/patient-provider.ts";
import { isEmbedded, Rpc } from "./endpoint/rpc.ts";
import { isFeeCapped, RpcFailure, toBrokerError, toReadError } from "./endpoint/rpc-failure.ts";
import type { EvmLedgerOptions } from "./evm-ledger-options.ts";
import {
  createComponents,
  type LedgerBase,
  type LedgerComponents,
  outageOf,
  startComponents,
  stopComponents,
  unreachable,
} from "./ledger-components.ts";
import type { LedgerInfo } from "../../ports/ledger-info.ts";
import type { TopicWriters } from "../../ports/topic-writers.ts";
import { BatchVerifier } from "./read/batch-verifier.ts";
import { blockTimeWarning } from "./read/block-time.ts";
import { FinalityPolicy } from "./read/finality.ts";
import { findBatch } from "./read/find-batch.ts";
import { findBlock } from "./read/find-block.ts";
import { createChainCheck } from "./read/own-chain-check.ts";
import { closeCalldata } from "./registry/registry.ts";
import { notActivated } from "./registry/settle-registry.ts";
import { toOutcome } from "./write/batch-outcome.ts";
import { nonceOf } from "./write/check-entries.ts";
import { priceOf } from "./write/fee-policy.ts";
import { GasPolicy } from "./write/gas.ts";
import { toPublish } from "./write/publish-request.ts";
import { TransactionRoom } from "./write/transaction-room.ts";
import type { Inclusion } from "./write/transaction-state.ts";

/** Pause between two checks of whether the transactions of another signer are final, in milliseconds. */
const otherSignerPauseMs = 500;
/** Gas limit for closing a topic, which writes a storage slot and a log. It uses about 40,000. */
const closeGas = 100_000;

/** The Ledger port on any EVM chain behind an EIP-1193 provider. */
export class EvmLedger implements Ledger {
  readonly groupId: GroupId;
  readonly publishTimeoutMs: number | undefined;
  readonly isFinal: boolean;
  readonly #base: LedgerBase;
  #components: LedgerComponents | undefined;
  #isStarting = false;
  #isStopped = false;

  constructor(options: EvmLedgerOptions) {
    this.groupId = options.groupId;
    this.isFinal = isEmbedded(options.provider);
    this.publishTimeoutMs = options.deadlineMs;
    const isPatient = (): boolean => this.#isStarting && !this.#isStopped;
    const rpc = new Rpc(
      this.isFinal ? options.provider : createPatientProvider(options.provider, { clock: options.clock, isPatient }),
    );
    this.#base = {
      options,
      rpc,
      signer: new Signer(options.privateKey),
      finality: new FinalityPolicy(rpc, options.finality ?? "latest"),
      verifier: new BatchVerifier(options.eventRules),
      room: new TransactionRoom(options.limits),
      gas: new GasPolicy(),
    };
  }

  get limits(): LedgerLimits {
    return this.#base.room.limits;
  }

  get sender(): Address {
    return this.#base.signer.address;
  }

  get chainCheck(): ChainCheck | undefined {
    const head = (): number => this.#components?.heads.last.number ?? -1;
    return createChainCheck({ provider: this.#base.options.provider, verifier: this.#base.verifier, head });
  }

  /** Address of the registry. Read it after `start`. */
  get registryAddress(): Address {
    return this.#started().registry.address;
  }

  async start({ mayDeploy = () => true }: LedgerStartOptions = {}): Promise<void> {
    this.#isStarting = true;
    let components: LedgerComponents | undefined;
    try {
      components = await createComponents(this.#base, mayDeploy);
      await startComponents(components, this.#base.options);
      if (!this.#isStopped) this.#components = components;
    } catch (error) {
      if (!(error instanceof RpcFailure)) throw error;
      if (error.kind === "insufficient-funds") throw toBrokerError(error);
      throw new BrokerError("chainUnreachable", { details: error.message, cause: error });
    } finally {
      this.#isStarting = false; // Before the components stop, which waits for their requests: a request that exceeds a rate limit then fails at once.
      if (this.#components === undefined && components !== undefined)
        await stopComponents(components, AbortSignal.abort());
    }
  }

  async stop(signal?: AbortSignal): Promise<void> {
    this.#isStopped = true;
    if (this.#components !== undefined) await stopComponents(this.#components, signal);
  }

  view(): LedgerView {
    const { provider, clock } = this.#base.options;
    const signer = this.#base.signer.address;
    if (this.#components === undefined)
      return { outage: provider.failure?.(), headBlock: undefined, facts: { signer } };
    const { chain, heads, registry, writers, sender } = this.#components;
    const facts = { ...chain, registry: registry.address, signer, ...writers?.facts };
    const warning = writers?.warning ?? blockTimeWarning(heads.last, clock.now());
    const outage = outageOf(provider, this.#components);
    const transactionFailure = outage === undefined ? sender.trouble.find() : undefined;
    return { outage, headBlock: heads.last.number, facts, warning, transactionFailure };
  }

  async readInfo(): Promise<LedgerInfo> {
    const finality = this.#base.options.finality ?? "latest";
    if (this.#components === undefined) return { finality, account: undefined };
    const { fees, sender } = this.#components;
    const address = this.sender;
    const balance = await this.#base.rpc.balance(address).catch(() => undefined);
    return { finality, account: { address, balance, fees: fees.current(), transactionsUnderWay: sender.unfinished } };
  }

  async openTopic(name: TopicName, signal: AbortSignal): Promise<{ readonly blockNumber: number }> {
    return this.#writable().opener.open(name, signal);
  }

  async prepareOpening(name: TopicName): Promise<TopicOpening> {
    const { registry, writers } = this.#writable();
    return { address: registry.addressOf(name), writers: writers && (await this.#ask(writers.forOpening())) };
  }

  async findWriters(name: TopicName, signal: AbortSignal): Promise<TopicWriters | undefined> {
    if (signal.aborted) throw abortedEarly();
    return this.#ask(this.#started().registry.findWriters(name));
  }

  async closeTopic(name: TopicName, signal: AbortSignal): Promise<{ readonly blockNumber: number }> {
    if ((await this.#checkMayClose(name)) === "closed") return this.#newestBlock(signal);
    try {
      // The registry writes no log if the topic is closed already.
      const request = { data: closeCalldata(name), gas: closeGas, mayLackLogs: true };
      return await this.#writable().transactions.change(request, signal);
    } catch (error) {
      // Since the first check, the owner may have reserved the topic for other writers, or a reorg may have removed the topic.
      if (isBrokerError(error, "transactionFailed")) await this.#checkMayClose(name);
      throw error;
    }
  }

  /** @throws BrokerError 100101 if the topic never existed; 100113 if this account may not close it. */
  async #checkMayClose(name: TopicName): Promise<"open" | "closed"> {
    const status = await this.#ask(this.#writable().registry.statusOf(name));
    if (status === "never-opened") throw new BrokerError("topicNotExist", { details: quote(name) });
    if (status === "others-only") throw new BrokerError("writerRefused", { details: quote(name) });
    return status;
  }

  async append(
    batches: readonly OutgoingBatch[],
    signal: AbortSignal,
    { mayStart, isAtomic, onAccepted }: AppendOptions = {},
  ): Promise<readonly BatchOutcome[]> {
    if (batches.length === 0) return [];
    const { transactions, fees } = this.#writable();
    const { room, verifier, gas } = this.#base;
    const { request, encoded } = toPublish(batches, { isAtomic, verifier, gas });
    const included = await transactions
      .publish({ mayStart, onAccepted, ...request }, signal)
      .catch((error: unknown) => {
        if (isFeeCapped(error)) room.onFeeCapped(request.gas, priceOf(fees.current()));
        throw error;
      });
    if (included !== undefined) return this.#outcomesOf(included, batches.length);
    if (request.gas <= room.blockGas) room.onTooLarge(encoded);
    return batches.map(() => ({ status: "too-large" }));
  }

  #outcomesOf({ logs, blockNumber }: Inclusion, count: number): readonly BatchOutcome[] {
    const outcomes = logs.flatMap((log) => toOutcome(log, blockNumber) ?? []);
    if (outcomes.length !== count) throw this.#started().guard.onMissing();
    return outcomes;
  }

  async *follow(after: BlockRef | undefined, signal: AbortSignal): AsyncGenerator<LedgerStep> {
    yield* this.#started().tracker.follow(after, signal);
  }

  forgetBlocks(): void {
    this.#components?.tracker.forgetBlocks();
  }

  async finalBlockNumber(signal: AbortSignal): Promise<number> {
    if (signal.aborted) throw abortedEarly();
    const head = await this.#ask(this.#started().heads.refresh());
    return (await this.#ask(this.#base.finality.finalAt(head))).number;
  }

  async findBlockHash(blockNumber: number, signal: AbortSignal): Promise<Hash | undefined> {
    const { heads } = this.#started();
    const { rpc, options } = this.#base;
    const latest = (): number => heads.latest.number;
    const header = await this.#ask(findBlock(blockNumber, { rpc, clock: options.clock, latest, signal }));
    return header?.hash;
  }

  async settled(sender: Address | undefined, signal: AbortSignal): Promise<number | undefined> {
    const { tracker } = this.#started();
    const isOwn = sender === undefined || sender === this.sender;
    const blockNumber = isOwn ? await this.#settledOwn(signal) : await this.#settledOf(sender, signal);
    // The chain node that answered may lag behind the one from which the tracker read blocks.
    return blockNumber === undefined ? undefined : Math.max(blockNumber, tracker.tail);
  }

  async #settledOwn(signal: AbortSignal): Promise<number | undefined> {
    const isSettled = await this.#started().sender.settle(signal);
    return isSettled ? this.finalBlockNumber(signal) : undefined;
  }

  /**
   * Waits until final blocks include every nonce that the journal has for `sender`: before that, the chain may still include those transactions. Returns the
   * newest final block; undefined if `signal` aborts first.
   */
  async #settledOf(sender: Address, signal: AbortSignal): Promise<number | undefined> {
    const { options, rpc } = this.#base;
    const { journal, groupId, clock } = options;
    const nonces = ((await journal?.listTransactions(groupId, sender)) ?? []).map(nonceOf);
    while (!signal.aborted) {
      const blockNumber = await this.finalBlockNumber(signal);
      const used = blockNumber < 0 ? 0 : await this.#ask(rpc.transactionCount(sender, blockNumber));
      if (nonces.every((nonce) => nonce < used)) return blockNumber;
      await pause(clock, otherSignerPauseMs, signal);
    }
    return undefined;
  }

  async readBlock(blockNumber: number, signal: AbortSignal): Promise<LedgerBlock | undefined> {
    return this.#ask(this.#started().reader.readOne(blockNumber, await this.finalBlockNumber(signal)));
  }

  async findBatch(batch: BatchStart, range: BlockRange, signal: AbortSignal): Promise<number | undefined> {
    const { address: registry } = this.#started().registry;
    return this.#ask(findBatch(range, { rpc: this.#base.rpc, registry, batch, signal }));
  }

  async readCommitted(places: readonly BatchPlace[], signal: AbortSignal): Promise<readonly CommittedBatch[]> {
    return this.#ask(this.#started().reader.readCommitted(places, signal));
  }

  async findProof(place: ProofPlace, signal: AbortSignal): Promise<ChainProof> {
    return this.#started().proofs.make(place, signal);
  }

  /** The newest block, final or not. Everything that the chain answered before this call is from this block or an earlier one. */
  async #newestBlock(signal: AbortSignal): Promise<{ readonly blockNumber: number }> {
    if (signal.aborted) throw abortedEarly();
    return { blockNumber: (await this.#ask(this.#started().heads.refresh())).number };
  }

  async #ask<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } catch (error) {
      throw toReadError(error);
    }
  }

  #started(): LedgerComponents {
    if (this.#components === undefined)
      throw new BrokerError("chainUnreachable", { details: "the ledger is not started" });
    return this.#components;
  }

  /** @throws BrokerError 200205 before the start, if the ledger may not sign, while the registry is missing, or while blocks cannot be read. */
  #writable(): LedgerComponents {
    const components = this.#started();
    if (this.#base.options.maySign === false) throw notActivated();
    const { guard, tracker, heads } = components;
    if (guard.outage !== undefined || tracker.isRefused || heads.outage !== undefined)
      throw unreachable(this.#base.options.provider, components);
    return components;
  }
}

function abortedEarly(): BrokerError {
  return new BrokerError("chainUnreachable", { details: "aborted before the chain was asked" });
}
