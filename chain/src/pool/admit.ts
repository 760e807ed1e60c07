import { toHex } from "@stele/eth/node";
import type { Transaction } from "../blocks/transaction.ts";
import { INITCODE_BYTES_MAX, intrinsicGas } from "../execution/gas.ts";
import { serverError } from "../rpc-error.ts";

export interface AdmissionRules {
  readonly chainId: bigint;
  readonly blockGasLimit: bigint;
  readonly baseFeePerGas: bigint;
}

/** A transaction that a block could contain, with the gas that it costs before any code runs. */
export interface AdmittedTransaction extends Transaction {
  readonly intrinsicGas: bigint;
}

/**
 * Checks that a block of this chain could contain the transaction.
 * @throws ProviderRpcError with geth's message if not.
 */
export function admit(transaction: Transaction, rules: AdmissionRules): AdmittedTransaction {
  const { chainId, gasLimit, maxFeePerGas, maxPriorityFeePerGas, to, data } = transaction;
  if (chainId === undefined) throw serverError("only replay-protected (EIP-155) transactions allowed over RPC");
  if (chainId !== rules.chainId)
    throw serverError(`invalid chain id for signer: have ${chainId} want ${rules.chainId}`);
  if (gasLimit > rules.blockGasLimit) throw serverError("exceeds block gas limit");
  if (maxPriorityFeePerGas > maxFeePerGas) {
    throw serverError(
      `max priority fee per gas higher than max fee per gas: address ${toHex(transaction.sender)}, ` +
        `maxPriorityFeePerGas: ${maxPriorityFeePerGas}, maxFeePerGas: ${maxFeePerGas}`,
    );
  }
  if (maxFeePerGas < rules.baseFeePerGas) {
    throw serverError(
      `max fee per gas less than block base fee: address ${toHex(transaction.sender)}, ` +
        `maxFeePerGas: ${maxFeePerGas}, baseFee: ${rules.baseFeePerGas}`,
    );
  }
  if (to === undefined && data.length > INITCODE_BYTES_MAX) {
    throw serverError(`max initcode size exceeded: code size ${data.length}, limit ${INITCODE_BYTES_MAX}`);
  }
  const needed = intrinsicGas(transaction);
  if (gasLimit < needed) throw serverError(`intrinsic gas too low: gas ${gasLimit}, minimum needed ${needed}`);
  // The new field comes first. After a copy (`{ ...transaction, intrinsicGas }`), V8 would make a hidden class for each object, and read every field slowly.
  return { intrinsicGas: needed, ...transaction };
}

/** @throws ProviderRpcError if the sender cannot pay for the transaction. */
export function checkFunds(transaction: Transaction, balance: bigint): void {
  const cost = transaction.gasLimit * transaction.maxFeePerGas + transaction.value;
  if (balance >= cost) return;
  throw serverError(
    `insufficient funds for gas * price + value: balance ${balance}, tx cost ${cost}, overshot ${cost - balance}`,
  );
}
