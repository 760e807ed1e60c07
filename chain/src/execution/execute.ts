import type { EVM } from "@ethereumjs/evm";
import { Account, Address } from "@ethereumjs/util";
import { toBuffer, toPlain } from "@stele/eth/node";
import { COINBASE } from "../blocks/header.ts";
import type { Log } from "../blocks/log.ts";
import type { AccessListEntry } from "../blocks/transaction.ts";
import type { EvmBlock } from "./evm.ts";

/** A transaction of a block, or a call whose changes are discarded. */
export interface Message {
  readonly from: Uint8Array;
  readonly to: Uint8Array | undefined;
  readonly gasLimit: bigint;
  readonly gasPrice: bigint;
  readonly value: bigint;
  readonly data: Uint8Array;
  readonly accessList: readonly AccessListEntry[];
  /** Gas that the message costs before any code runs. */
  readonly intrinsicGas: bigint;
}

export interface Execution {
  readonly gasUsed: bigint;
  readonly logs: readonly Log[];
  readonly output: Uint8Array;
  /** The EVM's error text; undefined on success. */
  readonly failure: string | undefined;
}

/** At most a fifth of the gas used is refunded (EIP-3529). */
const REFUND_QUOTIENT = 5n;

/** Runs a message on the state of `evm`. The caller has checked nonce, balance and intrinsic gas. */
export async function execute(evm: EVM, message: Message, block: EvmBlock): Promise<Execution> {
  const caller = new Address(message.from);
  evm.journal.cleanJournal();
  await evm.journal.checkpoint();
  try {
    warmAddresses(evm, message);
    await chargeCaller(evm, caller, message);
    const execution = await run(evm, message, block);
    await settle(evm, { message, caller, block, gasUsed: execution.gasUsed });
    await evm.journal.commit();
    await evm.journal.cleanup();
    return execution;
  } catch (error) {
    await evm.journal.revert();
    evm.transientStorage.clear();
    throw error;
  } finally {
    evm.stateManager.originalStorageCache.clear();
  }
}

/** Marks the addresses and slots that are warm from the start (EIP-2929, 2930 and 3651). */
function warmAddresses(evm: EVM, { from, to, accessList }: Message): void {
  for (const precompile of evm.precompiles.keys()) evm.journal.addAlwaysWarmAddress(precompile);
  for (const address of [from, to, COINBASE]) {
    if (address !== undefined) evm.journal.addAlwaysWarmAddress(toUnprefixed(address));
  }
  for (const { address, slots } of accessList) {
    evm.journal.addAlwaysWarmAddress(toUnprefixed(address));
    for (const slot of slots) evm.journal.addAlwaysWarmSlot(toUnprefixed(address), toUnprefixed(slot));
  }
}

function toUnprefixed(bytes: Uint8Array): string {
  return toBuffer(bytes).toString("hex");
}

async function chargeCaller(evm: EVM, caller: Address, { gasLimit, gasPrice }: Message): Promise<void> {
  const account = (await evm.stateManager.getAccount(caller)) ?? new Account();
  account.balance -= gasLimit * gasPrice;
  account.nonce += 1n;
  await evm.journal.putAccount(caller, account);
}

async function run(evm: EVM, message: Message, block: EvmBlock): Promise<Execution> {
  const { execResult } = await evm.runCall({
    block,
    gasPrice: message.gasPrice,
    caller: new Address(message.from),
    gasLimit: message.gasLimit - message.intrinsicGas,
    ...(message.to === undefined ? {} : { to: new Address(message.to) }),
    value: message.value,
    data: toPlain(message.data),
    skipNonceIncrement: true,
  });
  await deleteDestroyed(evm, execResult);
  const spent = message.intrinsicGas + execResult.executionGasUsed;
  return {
    gasUsed: spent - refundOf(spent, execResult.gasRefund ?? 0n),
    logs: (execResult.logs ?? []).map(([address, topics, data]) => ({ address, topics, data })),
    output: execResult.returnValue,
    failure: execResult.exceptionError?.error,
  };
}

/** The gas refund: `refund`, but at most the part of `spent` that EIP-3529 allows. */
export function refundOf(spent: bigint, refund: bigint): bigint {
  const refundMax = spent / REFUND_QUOTIENT;
  return refund < refundMax ? refund : refundMax;
}

interface Destroyed {
  readonly selfdestruct?: ReadonlyMap<string, unknown>;
  readonly createdAddresses?: ReadonlySet<string>;
}

/** Deletes destroyed contracts, but only those that the same transaction created (EIP-6780). */
async function deleteDestroyed(evm: EVM, { selfdestruct, createdAddresses }: Destroyed): Promise<void> {
  for (const address of selfdestruct?.keys() ?? []) {
    if (createdAddresses?.has(address) !== true) continue;
    await evm.journal.deleteAccount(new Address(Buffer.from(address.replace(/^0x/, ""), "hex")));
  }
}

interface Settlement {
  readonly message: Message;
  readonly caller: Address;
  readonly block: EvmBlock;
  readonly gasUsed: bigint;
}

/** Refunds unused gas. The tip goes to the coinbase, and the base fee is burned. */
async function settle(evm: EVM, { message, caller, block, gasUsed }: Settlement): Promise<void> {
  await credit(evm, caller, (message.gasLimit - gasUsed) * message.gasPrice);
  const tip = message.gasPrice - block.header.baseFeePerGas;
  if (tip > 0n) await credit(evm, new Address(COINBASE), tip * gasUsed);
}

async function credit(evm: EVM, address: Address, amount: bigint): Promise<void> {
  const account = (await evm.stateManager.getAccount(address)) ?? new Account();
  account.balance += amount;
  await evm.journal.putAccount(address, account);
}
