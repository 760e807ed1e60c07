import { type Signer, toHex } from "@stele/eth/node";
import { BrokerError } from "@stele/wire";
import type { Address, Hash } from "../../domain/topic.ts";
import type { Outage } from "../../ports/ledger.ts";
import { findDifference, readIdentity } from "./endpoint/check-chain.ts";
import { type ChainIdentity, type EvmProvider, isEmbedded, type Rpc } from "./endpoint/rpc.ts";
import type { EvmLedgerOptions } from "./evm-ledger-options.ts";
import { ProofMaker } from "./proof/proof-maker.ts";
import type { BatchVerifier } from "./read/batch-verifier.ts";
import { BlockTracker } from "./read/block-tracker.ts";
import { BlockReader } from "./read/block-reader.ts";
import type { FinalityPolicy } from "./read/finality.ts";
import { HeadWatcher } from "./read/head-watcher.ts";
import { PushedBlocks } from "./read/pushed-blocks.ts";
import type { DeployOptions } from "./registry/deploy-registry.ts";
import { OwnWriters } from "./registry/own-writers.ts";
import { Registry } from "./registry/registry.ts";
import { findOwnNonce, forgetDeployments } from "./registry/registry-deployer.ts";
import { RegistryGuard } from "./registry/registry-guard.ts";
import { noMemory, settleRegistry } from "./registry/settle-registry.ts";
import { TopicOpener } from "./registry/topic-opener.ts";
import { FeePolicy, priceOf } from "./write/fee-policy.ts";
import type { GasPolicy } from "./write/gas.ts";
import { JournalWriter } from "./write/journal-writer.ts";
import { RegistryTransactions } from "./write/registry-transactions.ts";
import type { TransactionRoom } from "./write/transaction-room.ts";
import { TransactionSender } from "./write/transaction-sender.ts";
import type { TransactionRequest } from "./write/transaction-state.ts";

const defaultDeadlineMs = 30_000;
const defaultFeeBumpAfterMs = 30_000;
const defaultPollMs = 1000;
const waitRemedy = "check that the chain makes blocks, its endpoints, and the group's fees, feeMaxGwei and finality";
const ownChainRemedy = "check the disk of the data folder";

/** The components of a ledger that survive a failed start. */
export interface LedgerBase {
  readonly options: EvmLedgerOptions;
  readonly rpc: Rpc;
  readonly signer: Signer;
  readonly finality: FinalityPolicy;
  readonly verifier: BatchVerifier;
  readonly room: TransactionRoom;
  readonly gas: GasPolicy;
}

/** The components that follow the chain. */
type ReadComponents = Readonly<ReturnType<typeof createReading>>;

/** The components that write to the chain. */
type WriteComponents = Readonly<ReturnType<typeof createWriting>>;

/** The components of a ledger between `start` and `stop`. */
export interface LedgerComponents extends ReadComponents, WriteComponents {
  readonly chain: ChainIdentity;
  readonly fees: FeePolicy;
  readonly journal: JournalWriter | undefined;
  readonly proofs: ProofMaker;
}

/** What the start found out about the chain. */
interface Settled extends DeployOptions {
  readonly address: Address;
  readonly genesisHash: Hash;
}

/** Connects to the chain, finds or deploys the registry, and creates the components, each after those that it uses. @throws BrokerError, RpcFailure. */
export async function createComponents(base: LedgerBase, mayDeploy: () => boolean): Promise<LedgerComponents> {
  const { rpc, options, signer, finality } = base;
  const { clock, logger, memory = noMemory, registry: choice } = options;
  const remembered = await memory.find();
  if (remembered !== undefined) options.provider.expectChain?.(remembered);
  const chain = await readIdentity(rpc);
  const difference = remembered && findDifference(chain, remembered); // Two chain nodes may answer at one address: the set checked only one.
  if (difference !== undefined) throw new BrokerError("chainUnreachable", { details: `the endpoint ${difference}` });
  const fees = new FeePolicy(rpc, { mode: options.fees ?? "auto", max: options.feeMax, clock });
  fees.onHead(await rpc.header("latest"));
  await fees.refresh();
  const deadlineMs = options.deadlineMs ?? defaultDeadlineMs;
  const journal = createJournal(base);
  const deployment = { signer, fees, finality, chainId: chain.chainId, clock, logger, deadlineMs, journal };
  const maySign = options.maySign ?? true;
  const address = await settleRegistry(rpc, { ...deployment, memory, remembered, choice, mayDeploy, maySign, chain });
  if (maySign) await forgetDeployments(deployment);
  const settled = { ...deployment, address, genesisHash: chain.genesisHash };
  const reading = createReading(base, settled);
  const writing = createWriting(base, settled, reading);
  connect(base, fees, { ...reading, ...writing });
  return {
    chain,
    fees,
    journal,
    proofs: new ProofMaker({ provider: options.provider, registry: address }),
    ...reading,
    ...writing,
  };
}

function createReading(base: LedgerBase, { address, genesisHash }: Settled) {
  const { rpc, options, signer, finality, verifier } = base;
  const { clock, logger, provider, pollMs = defaultPollMs } = options;
  const pushed = new PushedBlocks(address);
  const heads = new HeadWatcher({ rpc, pushed, clock, logger, pollMs });
  const account = signer.address;
  const reader = new BlockReader({ rpc, clock, logger, registry: address, account, verifier, pushed });
  const isFinal = isEmbedded(provider);
  const tracker = new BlockTracker({ rpc, reader, finality, genesisHash, isFinal, clock, logger });
  const guard = new RegistryGuard({ rpc, address, signer: account, clock, logger });
  return { heads, reader, tracker, guard };
}

function createWriting(base: LedgerBase, settled: Settled, reading: ReadComponents) {
  const { rpc, options, signer, room } = base;
  const { address } = settled;
  const { heads, tracker, guard } = reading;
  const { topicWriters, writers: accounts = [], memory = noMemory, clock, logger } = options;
  const newest = async (): Promise<number> => Math.max(heads.latest.number, (await memory.findIndexedBlock?.()) ?? 0);
  const registry = new Registry(rpc, { address, from: signer.address, newest, onMissing: () => guard.onMissing() });
  const ownNonce = findOwnNonce(address, signer.address);
  const sender = new TransactionSender({
    ...settled,
    rpc,
    registry: address,
    logger: options.logger,
    feeBumpAfterMs: options.feeBumpAfterMs ?? defaultFeeBumpAfterMs,
    waitRemedy: isEmbedded(options.provider) ? ownChainRemedy : waitRemedy,
    head: () => heads.latest.number,
    readUpTo: () => tracker.tail,
    isRead: (block) => tracker.isRead(block),
    blockGas: () => room.blockGas,
    onSent: () => (heads.isPolling ? heads.poke() : undefined),
    onOverdue: () => heads.poke(),
    estimateGas: (request) => estimateGas(base, request),
    unreachable: () => unreachable(options.provider, reading, settled.journal),
    isKept: (nonce) => nonce === ownNonce,
  });
  const transactions = new RegistryTransactions({ registry: address, sender, room });
  const own = { rpc, registry, account: signer.address, accounts, memory, clock, logger, heads, tracker, transactions };
  const writers = topicWriters === "own" ? new OwnWriters(own) : undefined;
  const opener = new TopicOpener({ registry, clock, room, transactions, writers });
  return { registry, sender, transactions, opener, writers };
}

function createJournal({ options, signer }: LedgerBase): JournalWriter | undefined {
  const { journal, groupId, clock, logger } = options;
  return journal === undefined
    ? undefined
    : new JournalWriter({ journal, groupId, sender: signer.address, clock, logger });
}

/** The gas for a transaction that had too little. @throws RpcFailure. */
async function estimateGas({ rpc, signer, gas, room }: LedgerBase, request: TransactionRequest): Promise<number> {
  const estimate = await rpc.estimateGas({ from: signer.address, to: request.to, data: toHex(request.data) });
  return Math.min(gas.onShort(estimate, request.formulaGas), room.blockGas);
}

function connect({ room, gas }: LedgerBase, fees: FeePolicy, components: ReadComponents & WriteComponents): void {
  const { heads, tracker, guard, sender } = components;
  heads.listen((head) => {
    fees.onHead(head);
    room.onHead(head.gasLimit, { gasFactor: gas.factor, price: priceOf(fees.current()) });
    tracker.onHead(head);
  });
  tracker.listen({
    onRound: (round) => sender.onRound(round),
    onForeign: () => heads.forget(),
    onReorganised: (blockNumber) => {
      heads.forget();
      sender.onReorganised(blockNumber);
      guard.check();
    },
  });
}

/** Why the group cannot use the chain; undefined while it can, as far as known. */
export function outageOf(
  provider: EvmProvider,
  { heads, guard, tracker }: Omit<ReadComponents, "reader">,
): Outage | undefined {
  return provider.failure?.() ?? tracker.findShortage() ?? guard.outage ?? tracker.outage ?? heads.outage;
}

/** The error for a caller whose transaction was not sent. */
export function unreachable(provider: EvmProvider, components: ReadComponents, journal?: JournalWriter): BrokerError {
  const reason = outageOf(provider, components)?.reason ?? journal?.failure ?? "nothing was sent";
  return new BrokerError("chainUnreachable", { details: reason });
}

/** Starts all components. If it fails, some may run: stop them. */
export async function startComponents(
  components: LedgerComponents,
  { maySign = true }: EvmLedgerOptions,
): Promise<void> {
  const { heads, tracker, sender, writers } = components;
  await heads.start();
  await tracker.start(heads.latest);
  if (!maySign) return;
  await sender.start();
  writers?.start();
}

/** Stops all components. Waits for the outcomes of pending transactions until `signal` aborts. */
export async function stopComponents(
  { sender, tracker, heads, guard, writers, journal }: LedgerComponents,
  signal?: AbortSignal,
): Promise<void> {
  void guard.stop();
  const watched = writers?.stop();
  await sender.stop(signal);
  await tracker.stop();
  await heads.stop();
  await watched;
  await journal?.idle(); // The last blocks that the tracker read change the journal, too.
}
