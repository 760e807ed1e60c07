import { BrokerError } from "@stele/wire";
import type { Address } from "../../../domain/topic.ts";
import type { TransactionRoom } from "./transaction-room.ts";
import type { TransactionSender } from "./transaction-sender.ts";
import { type Inclusion, type TransactionRequest, TransactionTooLarge } from "./transaction-state.ts";

export interface RegistryTransactionsOptions {
  readonly registry: Address;
  readonly sender: TransactionSender;
  readonly room: TransactionRoom;
}

/** Transactions to the group's registry, within the gas of one block. */
export class RegistryTransactions {
  readonly #options: RegistryTransactionsOptions;

  constructor(options: RegistryTransactionsOptions) {
    this.#options = options;
  }

  /** Publishes batches. Undefined if the chain accepts no transaction of that size. @throws BrokerError. */
  async publish(request: Omit<TransactionRequest, "to">, signal: AbortSignal): Promise<Inclusion | undefined> {
    const { registry, sender, room } = this.#options;
    if (request.gas > room.blockGas) return undefined;
    try {
      return await sender.send({ to: registry, ...request }, signal);
    } catch (error) {
      if (error instanceof TransactionTooLarge) return undefined;
      throw error;
    }
  }

  /** Changes topics or sets of writers. @throws BrokerError as the Ledger port says. */
  async change(
    { data, gas, mayLackLogs }: Pick<TransactionRequest, "data" | "gas" | "mayLackLogs">,
    signal: AbortSignal,
  ): Promise<Inclusion> {
    const request = { data, gas: Math.min(gas, this.#options.room.blockGas), logsExpected: undefined, mayLackLogs };
    const included = await this.publish(request, signal);
    if (included !== undefined) return included;
    throw new BrokerError("transactionFailed", { details: "the chain accepts no transaction of that size" });
  }
}
