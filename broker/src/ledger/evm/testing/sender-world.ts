import { type Hex, Signer, toQuantity } from "@stele/eth/node";
import { BrokerError } from "@stele/wire";
import { parseTransaction } from "viem";
import { defaultGroupId } from "../../../domain/group-id.ts";
import { type Logger, silentLogger } from "../../../lib/logger.ts";
import type { Journal } from "../../../ports/journal.ts";
import { VirtualClock } from "../../../ports/testing/virtual-clock.ts";
import { type EvmProvider, Rpc } from "../endpoint/rpc.ts";
import { type FeeMode, FeePolicy } from "../write/fee-policy.ts";
import { JournalWriter } from "../write/journal-writer.ts";
import { TransactionSender, type TransactionSenderOptions } from "../write/transaction-sender.ts";
import { noOp, type TransactionRequest } from "../write/transaction-state.ts";
import { testKey } from "./evm-harness.ts";
import { connectionLost } from "./intercepted-provider.ts";
import { hashOf } from "./writer-world.ts";

type Request = Parameters<EvmProvider["request"]>[0];

/** A chain node with a transaction pool. The test decides what block 1 contains; blocks have no logs. */
export class PoolNode implements EvmProvider {
  readonly pool = new Set<Hex>();
  /** Hashes of the transactions in block 1. */
  readonly included = new Set<Hex>();
  /** Upper bound on the sent transactions that go straight into block 1; further ones go into the pool. */
  includeMax = 0;
  /** Another transaction of the account, with its first nonce, in the newest final block. */
  foreign: { readonly hash: Hex; readonly from: Hex; readonly nonce: Hex } | undefined;
  /** How many transactions of the pool the chain node counts as executable; all by default. */
  executable: () => number = () => this.pool.size;
  /** Whether the chain node refuses a nonce before its turn, as the embedded chain and some others do. */
  isStrict = false;
  /** Whether the chain node accepts known transactions as new, as some do. */
  isForgiving = false;
  isAway = false;
  /** The error for every transaction that the chain node does not know; undefined if it accepts such transactions. */
  refusal: Error | undefined;
  /** Runs before each answer. */
  before: (method: string) => Promise<void> = async () => {};
  /** Runs before the chain node accepts a transaction; throws to refuse the transaction. */
  onSend: (raw: Hex) => void = () => {};
  sends = 0;

  async request({ method, params = [] }: Request): Promise<unknown> {
    await this.before(method);
    if (this.isAway) throw connectionLost();
    const [first, tag] = params as readonly [Hex, unknown]; // The ledger sends these.
    if (method === "eth_getTransactionReceipt") return this.included.has(first) ? receipt : null;
    if (method === "eth_getTransactionByHash") return [...this.pool].some((raw) => hashOf(raw) === first) ? {} : null;
    if (method === "eth_gasPrice") return "0x3b9aca00";
    if (method === "eth_getTransactionCount") {
      return toQuantity(
        tag === "0x0"
          ? this.foreign === undefined
            ? 0
            : 1
          : this.included.size + (tag === "pending" ? this.executable() : 0),
      );
    }
    if (method === "eth_getBlockByNumber") return { transactions: this.foreign === undefined ? [] : [this.foreign] };
    return method === "eth_sendRawTransaction" ? this.#take(first) : "0x0";
  }

  #take(raw: Hex): Hex {
    this.sends += 1;
    this.onSend(raw);
    const hash = hashOf(raw);
    const isKnown = this.pool.has(raw) || this.included.has(hash);
    if (isKnown && !this.isForgiving) throw Object.assign(new Error("already known"), { code: -32_000 });
    const nonce = parseTransaction(raw).nonce ?? 0;
    if (this.isStrict && nonce > this.pool.size + this.included.size) {
      throw Object.assign(new Error("nonce too high"), { code: -32_000 });
    }
    if (this.refusal !== undefined && !isKnown) throw Object.assign(this.refusal, { code: -32_000 });
    if (this.included.size < this.includeMax) this.included.add(hash);
    else if (!this.included.has(hash)) this.pool.add(raw);
    return hash;
  }
}

const receipt = {
  blockHash: `0x${"11".repeat(32)}`,
  blockNumber: "0x1",
  status: "0x1",
  gasUsed: "0x5208",
  logs: [],
  contractAddress: null,
};

export interface SenderOptions {
  readonly fees?: FeeMode;
  readonly journal?: Journal;
  readonly deadlineMs?: number;
  readonly feeBumpAfterMs?: number;
  readonly logger?: Logger;
  /** The gas that a transaction needs; the gas that it offers if omitted. */
  readonly estimateGas?: TransactionSenderOptions["estimateGas"];
}

interface SenderSurroundings extends Pick<TransactionSenderOptions, "clock" | "signer" | "head" | "readUpTo"> {
  readonly node: EvmProvider;
  /** Whether a block is on the branch that was read; every block if omitted. */
  readonly isRead?: TransactionSenderOptions["isRead"];
  /** Any gas if omitted. */
  readonly blockGas?: TransactionSenderOptions["blockGas"];
}

/** A sender on a chain node of a test, with its fees. */
export function createSender(
  {
    node,
    clock,
    signer,
    isRead = async () => true,
    blockGas = () => Number.POSITIVE_INFINITY,
    ...chain
  }: SenderSurroundings,
  {
    fees: mode = "zero",
    journal,
    deadlineMs = 3_600_000,
    feeBumpAfterMs = 3_600_000,
    logger = silentLogger,
    estimateGas = async ({ gas }) => gas,
  }: SenderOptions,
): { readonly fees: FeePolicy; readonly sender: TransactionSender } {
  const rpc = new Rpc(node);
  const fees = new FeePolicy(rpc, { mode, max: undefined, clock });
  const place = { groupId: defaultGroupId, sender: signer.address, clock, logger };
  const sender = new TransactionSender({
    ...chain,
    rpc,
    clock,
    logger,
    signer,
    chainId: 1,
    registry: signer.address,
    fees,
    journal: journal === undefined ? undefined : new JournalWriter({ journal, ...place }),
    deadlineMs,
    waitRemedy: "check the chain",
    feeBumpAfterMs,
    isRead,
    blockGas,
    onSent: () => {},
    onOverdue: () => {},
    estimateGas,
    unreachable: () => new BrokerError("chainUnreachable"),
    isKept: () => false,
  });
  return { fees, sender };
}

/** A sender on virtual time, whose chain node is at block 1. */
export class SenderWorld {
  readonly node = new PoolNode();
  readonly clock = new VirtualClock();
  readonly signer = new Signer(testKey("sender"));
  readonly fees: FeePolicy;
  readonly sender: TransactionSender;
  /** The newest block. */
  head = 1;
  /** The newest final block that was read. */
  readUpTo = 0;
  blockGas = Number.POSITIVE_INFINITY;

  constructor(options: SenderOptions = {}) {
    const { node, clock, signer } = this;
    const chain = { head: () => this.head, readUpTo: () => this.readUpTo, blockGas: () => this.blockGas };
    ({ fees: this.fees, sender: this.sender } = createSender({ node, clock, signer, ...chain }, options));
  }

  /** Sends `count` transactions, one after another. */
  async send(count: number, request: Partial<TransactionRequest> = {}): Promise<void> {
    for (let sent = 0; sent < count; sent += 1) {
      const whole = { ...noOp(this.signer.address), gas: 50_000, logsExpected: 1, ...request };
      void this.sender.send(whole, new AbortController().signal).catch(() => {}); // Some are answered 200201.
      await this.clock.advance(20);
    }
  }

  /** Time until the condition holds, in milliseconds of virtual time; at most ten minutes. */
  async timeUntil(isSo: () => boolean): Promise<number> {
    const since = this.clock.now();
    while (!isSo() && this.clock.now() - since < 600_000) await this.clock.advance(250);
    return this.clock.now() - since;
  }
}
