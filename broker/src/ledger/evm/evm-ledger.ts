import { BrokerError, quote } from "@stele/wire";
import type { GroupId } from "../../domain/group-id.ts";
import type { Address, Hash } from "../../domain/topic.ts";
import type { TopicName } from "../../domain/topic-name.ts";
import type { ChainCheck } from "../../ports/chain-check.ts";
import type { ChainProof, ProofPlace } from "../../ports/chain-proof.ts";
import type {
  BatchOutcome,
  BlockRef,
  Ledger,
  LedgerBlock,
  LedgerLimits,
  LedgerStartOptions,
  LedgerStep,
  LedgerView,
  OutgoingBatch,
} from "../../ports/ledger.ts";
import { BatchVerifier } from "./read/batch-verifier.ts";
import { toOutcome } from "./write/batch-outcome.ts";
import { BlockFeed } from "./read/block-feed.ts";
import { BlockReader } from "./read/block-reader.ts";
import type { DeployOptions } from "./registry/deploy-registry.ts";
import type { EvmLedgerOptions } from "./evm-ledger-options.ts";
import { FeePolicy } from "./write/fee-policy.ts";
import { FinalityPolicy } from "./read/finality.ts";
import { findBlock } from "./read/find-block.ts";
import { GasPolicy } from "./write/gas.ts";
import { toHex } from "./hex.ts";
import { HeadWatcher } from "./read/head-watcher.ts";
import { blockTimeWarning } from "./read/block-time.ts";
import { ChainHeight } from "./read/chain-height.ts";
import { identifyChain } from "./registry/identify-chain.ts";
import { JournalWriter } from "./write/journal-writer.ts";
import { type LedgerParts, startParts, stopParts } from "./ledger-parts.ts";
import { Signer } from "./native-crypto.ts";
import { OwnWriters } from "./registry/own-writers.ts";
import { type Inclusion, TransactionTooLarge, type TransactionRequest } from "./write/pending-transaction.ts";
import { createChainCheck } from "./read/own-chain-check.ts";
import { ProofMaker } from "./proof/proof-maker.ts";
import { type EncodedBatch, encodePublish } from "./write/publish-calldata.ts";
import { PushedBlocks } from "./read/pushed-blocks.ts";
import { closeCalldata, Registry } from "./registry/registry.ts";
import { findOwnNonce, RegistryDeployer } from "./registry/registry-deployer.ts";
import { RegistryGuard } from "./registry/registry-guard.ts";
import { type ChainIdentity, Rpc } from "./endpoint/rpc.ts";
import { RpcFailure, toBrokerError } from "./endpoint/rpc-failure.ts";
import { noMemory, type SettleOptions, settleRegistry } from "./registry/settle-registry.ts";
import { TopicOpener } from "./registry/topic-opener.ts";
import { type ConfiguredLimits, TransactionRoom } from "./write/transaction-room.ts";
import { TransactionSender } from "./write/transaction-sender.ts";

const defaultLimits: ConfiguredLimits = {
  eventsPerTransactionMax: 1000,
  bytesPerTransactionMax: 98_304,
  transactionsInFlightMax: 4,
};
const defaultDeadlineMs = 30_000;
const defaultFeeBumpAfterMs = 30_000;
const defaultPollMs = 1000;
/** Closing writes a slot and a log; measured about 40,000. */
const closeGas = 100_000;
const noRoot = new Uint8Array(32);

/** The Ledger on any EVM chain that can be asked through EIP-1193. */
export class EvmLedger implements Ledger {
  readonly groupId: GroupId;
  readonly publishTimeoutMs: number | undefined;
  readonly isFinal: boolean;
  readonly #room: TransactionRoom;
  readonly #options: EvmLedgerOptions;
  readonly #rpc: Rpc;
  readonly #signer: Signer;
  readonly #finality: FinalityPolicy;
  readonly #verifier: BatchVerifier;
  readonly #gas = new GasPolicy();
  readonly #deployer: RegistryDeployer;
  #parts: LedgerParts | undefined;
  #isStopped = false;

  constructor(options: EvmLedgerOptions) {
    this.groupId = options.groupId;
    this.isFinal = options.isFinal ?? false;
    this.publishTimeoutMs = options.deadlineMs;
    this.#room = new TransactionRoom(options.limits ?? defaultLimits);
    this.#options = options;
    this.#verifier = new BatchVerifier(options.eventRules);
    this.#rpc = new Rpc(options.provider);
    this.#deployer = new RegistryDeployer(this.#rpc, options.logger);
    this.#finality = new FinalityPolicy(this.#rpc, options.finality ?? "latest");
    this.#signer = new Signer(options.privateKey);
  }

  get limits(): LedgerLimits {
    return this.#room.limits;
  }

  get sender(): Address {
    return this.#signer.address;
  }

  get chainCheck(): ChainCheck | undefined {
    const head = (): number => this.#parts?.heads.last.number ?? -1;
    return createChainCheck({ provider: this.#options.provider, verifier: this.#verifier, head });
  }

  /** Where the registry is. To be read after `start`. */
  get registryAddress(): Address {
    return this.#started().registry.address;
  }

  async start({ mayDeploy = () => true }: LedgerStartOptions = {}): Promise<void> {
    try {
      const parts = await this.#build(mayDeploy);
      if (this.#isStopped) await stopParts(parts, AbortSignal.abort());
      else this.#parts = parts;
    } catch (error) {
      if (!(error instanceof RpcFailure)) throw error;
      if (error.kind === "insufficient-funds") throw toBrokerError(error);
      throw new BrokerError("chainUnreachable", { details: error.message, cause: error });
    }
  }

  async stop(signal?: AbortSignal): Promise<void> {
    this.#isStopped = true;
    if (this.#parts !== undefined) await stopParts(this.#parts, signal);
  }

  view(): LedgerView {
    const failure = this.#options.provider.failure?.();
    const signer = this.#signer.address;
    if (this.#parts === undefined) return { outage: failure, headBlock: undefined, facts: { signer } };
    const { chain, heads, registry, height, guard, feed, writers } = this.#parts;
    const outage = failure ?? height.look() ?? guard.outage ?? feed.outage;
    const facts = { ...chain, registry: registry.address, signer, ...writers?.facts };
    const warning = writers?.warning ?? blockTimeWarning(heads.last, this.#options.clock.now());
    return { outage, headBlock: heads.last.number, facts, warning };
  }

  async openTopic(name: TopicName, signal: AbortSignal): Promise<{ readonly blockNumber: number }> {
    return this.#writable().opener.open(name, signal);
  }

  async closeTopic(name: TopicName, signal: AbortSignal): Promise<{ readonly blockNumber: number }> {
    const { registry } = this.#writable();
    const status = await this.#ask(registry.statusOf(name));
    if (status === "never-opened") throw new BrokerError("topicNotExist", { details: quote(name) });
    if (status === "closed") return this.#now(signal);
    if (status === "of-others") throw new BrokerError("writerRefused", { details: quote(name) });
    return this.#change({ data: closeCalldata(name), gas: closeGas }, signal);
  }

  async append(batches: readonly OutgoingBatch[], signal: AbortSignal): Promise<readonly BatchOutcome[]> {
    if (batches.length === 0) return [];
    const { registry } = this.#writable();
    const encoded = batches.map((batch) => this.#encode(batch));
    const data = encodePublish(encoded);
    const gas = this.#gas.forPublish(data.length, batches.length);
    const included = await this.#publish({ to: registry.address, data, gas, logsExpected: batches.length }, signal);
    if (included !== undefined) return this.#outcomesOf(included, batches.length);
    if (gas <= this.#room.blockGas) this.#room.onTooLarge(encoded);
    return batches.map(() => ({ status: "too-large" }));
  }

  #outcomesOf({ logs, blockNumber }: Inclusion, count: number): readonly BatchOutcome[] {
    const outcomes = logs.flatMap((log) => toOutcome(log, blockNumber) ?? []);
    if (outcomes.length !== count) throw this.#started().guard.onMissing();
    return outcomes;
  }

  async *follow(after: BlockRef | undefined, signal: AbortSignal): AsyncGenerator<LedgerStep> {
    yield* this.#started().feed.follow(after, signal);
  }

  async finalBlockNumber(signal: AbortSignal): Promise<number> {
    if (signal.aborted) throw abortedEarly();
    const head = await this.#ask(this.#started().heads.refresh());
    return (await this.#ask(this.#finality.finalAt(head))).number;
  }

  async findBlockHash(blockNumber: number, signal: AbortSignal): Promise<Hash | undefined> {
    const { heads } = this.#started();
    const latest = (): number => heads.latest.number;
    const header = await this.#ask(
      findBlock(blockNumber, { rpc: this.#rpc, clock: this.#options.clock, latest, signal }),
    );
    return header?.hash;
  }

  async settled(sender: Address | undefined, signal: AbortSignal): Promise<number | undefined> {
    const parts = this.#started();
    if (sender !== undefined && sender !== this.sender) return this.#settledOf(sender, signal);
    return (await parts.sender.settlement.wait(signal)) ? this.finalBlockNumber(signal) : undefined;
  }

  /** What the journal has of an account that no live node signs with can come until the final block has its nonces. */
  async #settledOf(sender: Address, signal: AbortSignal): Promise<number | undefined> {
    const { journal, groupId } = this.#options;
    const entries = (await journal?.listTransactions(groupId, sender)) ?? [];
    const blockNumber = await this.finalBlockNumber(signal);
    const used = blockNumber < 0 ? 0 : await this.#ask(this.#rpc.transactionCount(sender, blockNumber));
    return entries.every(({ nonce }) => nonce < used) ? blockNumber : undefined;
  }

  async readBlock(blockNumber: number, signal: AbortSignal): Promise<LedgerBlock | undefined> {
    return this.#ask(this.#started().reader.readOne(blockNumber, await this.finalBlockNumber(signal)));
  }

  async findProof(place: ProofPlace, signal: AbortSignal): Promise<ChainProof> {
    return this.#started().proofs.make(place, signal);
  }

  #encode({ address, count, events }: OutgoingBatch): EncodedBatch {
    return { address, count, events, eventsRoot: count === 0 ? noRoot : this.#verifier.rootOf(events, count) };
  }

  /** Undefined when the endpoint takes no transaction that large. */
  async #publish(request: TransactionRequest, signal: AbortSignal): Promise<Inclusion | undefined> {
    if (request.gas > this.#room.blockGas) return undefined;
    try {
      return await this.#started().sender.send(request, signal);
    } catch (error) {
      if (error instanceof TransactionTooLarge) return undefined;
      throw error;
    }
  }

  /** What a transaction is given that had too little gas. @throws RpcFailure. */
  async #estimateGas({ to, data, gas }: TransactionRequest): Promise<number> {
    const estimate = await this.#rpc.estimateGas({ from: this.#signer.address, to, data: toHex(data) });
    return Math.min(this.#gas.onShort(gas, estimate), this.#room.blockGas);
  }

  async #change({ data, gas }: Pick<TransactionRequest, "data" | "gas">, signal: AbortSignal): Promise<Inclusion> {
    const { registry } = this.#started();
    const gasGiven = Math.min(gas, this.#room.blockGas);
    const request = { to: registry.address, data, gas: gasGiven, logsExpected: undefined };
    const included = await this.#publish(request, signal);
    if (included !== undefined) return included;
    throw new BrokerError("transactionFailed", { details: "the chain takes no transaction that large" });
  }

  /** The newest block, final or not: what a question is answered with is in it or before it. */
  async #now(signal: AbortSignal): Promise<{ readonly blockNumber: number }> {
    if (signal.aborted) throw abortedEarly();
    return { blockNumber: (await this.#ask(this.#started().heads.refresh())).number };
  }

  async #ask<T>(answer: Promise<T>): Promise<T> {
    try {
      return await answer;
    } catch (error) {
      throw toBrokerError(error);
    }
  }

  #started(): LedgerParts {
    if (this.#parts === undefined) throw new BrokerError("chainUnreachable", { details: "the ledger is not started" });
    return this.#parts;
  }

  /** @throws BrokerError 200205 while there is no registry to write to, or what is written could not be read. */
  #writable(): LedgerParts {
    const parts = this.#started();
    if (parts.guard.outage !== undefined || parts.feed.isRefused) throw this.#unreachable();
    return parts;
  }

  #unreachable(): BrokerError {
    return new BrokerError("chainUnreachable", { details: this.view().outage?.reason ?? "nothing was sent" });
  }

  async #build(mayDeploy: () => boolean): Promise<LedgerParts> {
    const { clock, logger } = this.#options;
    const chain = await identifyChain(this.#rpc, {
      memory: this.#options.memory ?? noMemory,
      chainId: this.#options.chainId,
    });
    const { chainId } = chain;
    const fees = new FeePolicy(this.#rpc, { mode: this.#options.fees ?? "auto", max: this.#options.feeMax });
    await fees.refresh();
    fees.onHead(await this.#rpc.header("latest"));
    const deadlineMs = this.#options.deadlineMs ?? defaultDeadlineMs;
    const finality = this.#finality;
    const common = { rpc: this.#rpc, signer: this.#signer, chainId, fees, finality, clock, logger, deadlineMs };
    const address = await this.#settleRegistry(chain, { ...common, mayDeploy });
    const signer = this.#signer.address;
    const ownNonce = findOwnNonce(address, signer);
    const guard = new RegistryGuard({
      ...common,
      address,
      signer,
      isBehind: () => height.look() !== undefined,
      restore: () => this.#deployer.restore(address, common),
    });
    const registry = new Registry(this.#rpc, { address, from: signer, onMissing: () => guard.onMissing() });
    const pushed = new PushedBlocks();
    const reader = new BlockReader({ ...common, registry: address, account: signer, verifier: this.#verifier, pushed });
    const feed: BlockFeed = new BlockFeed({
      ...common,
      reader,
      isFinal: this.isFinal,
      onRound: (round) => sender.onRound(round),
      onReorganised: (blockNumber) => {
        heads.onReorganised();
        sender.onReorganised(blockNumber);
        guard.check();
      },
    });
    const heads: HeadWatcher = new HeadWatcher({
      ...common,
      pushed,
      pollMs: this.#options.pollMs ?? defaultPollMs,
      onHead: (head) => {
        fees.onHead(head);
        this.#room.onHead(head.gasLimit);
        feed.onHead(head);
        height.look();
      },
    });
    const sender: TransactionSender = new TransactionSender({
      ...common,
      registry: address,
      journal: this.#journalWriter(),
      feeBumpAfterMs: this.#options.feeBumpAfterMs ?? defaultFeeBumpAfterMs,
      head: () => heads.latest.number,
      readUpTo: () => feed.tail,
      isRead: (block) => feed.isRead(block),
      onSent: () => (heads.isPolling ? heads.poke() : undefined),
      onOverdue: () => heads.poke(),
      estimateGas: (request) => this.#estimateGas(request),
      unreachable: () => this.#unreachable(),
      isKept: (nonce) => nonce === ownNonce,
    });
    const height = new ChainHeight({ clock, head: () => heads.last.number, reached: () => feed.reached });
    const writers = this.#createWriters(registry, { heads, height });
    const opener = this.#createOpener(registry, writers);
    const proofs = new ProofMaker({ provider: this.#options.provider, registry: address });
    const parts = { chain, heads, sender, registry, opener, reader, feed, height, guard, proofs, writers };
    await startParts(parts);
    return parts;
  }

  #createWriters(registry: Registry, { heads, height }: Pick<LedgerParts, "heads" | "height">): OwnWriters | undefined {
    const { topicWriters, writers: accounts = [], memory = noMemory, clock, logger } = this.#options;
    if (topicWriters !== "own") return undefined;
    const send = (request: Pick<TransactionRequest, "data" | "gas">): Promise<Inclusion> =>
      this.#change(request, new AbortController().signal); // The sender's deadline ends it.
    return new OwnWriters({
      rpc: this.#rpc,
      registry,
      account: this.#signer.address,
      accounts,
      memory,
      clock,
      logger,
      send,
      head: () => heads.latest.number,
      isBehind: () => height.look() !== undefined,
    });
  }

  #createOpener(registry: Registry, writers: OwnWriters | undefined): TopicOpener {
    return new TopicOpener({
      registry,
      clock: this.#options.clock,
      underWayMax: () => this.limits.transactionsInFlightMax,
      blockGas: () => this.#room.blockGas,
      findWriters: async () => writers?.forOpening(),
      send: (data, gas, signal) => this.#change({ data, gas }, signal),
    });
  }

  #journalWriter(): JournalWriter | undefined {
    const { journal, groupId, clock, logger } = this.#options;
    const sender = this.#signer.address;
    return journal === undefined ? undefined : new JournalWriter({ journal, groupId, sender, clock, logger });
  }

  async #settleRegistry(
    chain: ChainIdentity,
    options: DeployOptions & Pick<SettleOptions, "mayDeploy">,
  ): Promise<Address> {
    const { memory = noMemory, registry: choice, logger } = this.#options;
    const deployer = this.#deployer;
    return settleRegistry(this.#rpc, {
      ...options,
      memory,
      choice,
      chain,
      signer: this.#signer.address,
      logger,
      deploy: (place) => deployer.deploy(options, place),
      restore: (address) => deployer.restore(address, options),
    });
  }
}

function abortedEarly(): BrokerError {
  return new BrokerError("chainUnreachable", { details: "given up before it was asked" });
}
