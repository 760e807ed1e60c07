import type { Address } from "../domain/topic.ts";

/** What the next transaction offers for a unit of gas, in wei. */
export type OfferedFees =
  | { readonly kind: "eip1559"; readonly maxFeePerGas: bigint; readonly maxPriorityFeePerGas: bigint }
  | { readonly kind: "legacy"; readonly gasPrice: bigint };

/** The account that signs a ledger's transactions. */
export interface AccountInfo {
  readonly address: Address;
  /** Balance of the account, in wei; undefined if the chain does not report it. */
  readonly balance: bigint | undefined;
  readonly fees: OfferedFees;
  /** Number of transactions that were sent to the chain and are not final yet, or that wait to be sent. */
  readonly transactionsUnderWay: number;
}

/** What a ledger knows of its chain and its account, for operators. */
export interface LedgerInfo {
  /** Which blocks are final: all (`latest`), those with this number of blocks on top, or those that the chain calls safe or finalized. */
  readonly finality: "latest" | "safe" | "finalized" | number;
  /** The ledger's account; undefined before the start, and for a chain without accounts. */
  readonly account: AccountInfo | undefined;
}
