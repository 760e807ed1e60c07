import { BrokerError, quote } from "@stele/wire";
import type { PublishCall } from "../../engine/broker.ts";
import { parameterError } from "../shared/failure.ts";
import { publishBytes } from "../shared/connection/publish-bytes.ts";
import { keptFrameBytes, transactionBytesMax, transactionFramesMax, transactionsMax } from "./limits.ts";

/** An ACK or NACK. */
export interface Settlement {
  readonly settle: () => void;
  /** {@link settle} may follow until the promise settles, even after the connection has ended. */
  readonly linger: (until: Promise<void>) => void;
}

/** The contents of a transaction, which take effect when it is committed. */
export interface Transaction {
  readonly sends: readonly PublishCall[];
  /** In order of arrival. */
  readonly settlements: readonly Settlement[];
}

interface OpenTransaction {
  readonly sends: PublishCall[];
  readonly settlements: Settlement[];
  bytes: number;
}

/** The transactions that one connection has begun. */
export class Transactions {
  readonly #open = new Map<string, OpenTransaction>();
  #bytes = 0;

  /** Bytes that the transactions keep. */
  get bytes(): number {
    return this.#bytes;
  }

  /** @throws BrokerError 200001 if the transaction is already open, 200301 if too many are open. */
  begin(name: string): void {
    if (this.#open.has(name)) throw parameterError(`the transaction ${quote(name)} is open already`);
    if (this.#open.size >= transactionsMax) {
      throw new BrokerError("overQuota", { details: `this connection has ${transactionsMax} open transactions` });
    }
    const bytes = name.length + keptFrameBytes;
    this.#open.set(name, { sends: [], settlements: [], bytes });
    this.#bytes += bytes;
  }

  /** @throws BrokerError 200001 if the transaction is not open, 200301 if it is full, or if the transactions of the connection have too many bytes. */
  addSend(name: string, call: PublishCall): void {
    this.#find(name, publishBytes(call)).sends.push(call);
  }

  /** @throws BrokerError as {@link addSend}. */
  addSettlement(name: string, settlement: Settlement): void {
    this.#find(name, 0).settlements.push(settlement);
  }

  /** Ends a transaction, and returns its contents. @throws BrokerError 200001 if it is not open. */
  end(name: string): Transaction {
    const transaction = this.#find(name);
    this.#open.delete(name);
    this.#bytes -= transaction.bytes;
    return transaction;
  }

  /** Finds an open transaction. `more` is the size in bytes of a frame to add to the transaction. */
  #find(name: string, more?: number): OpenTransaction {
    const transaction = this.#open.get(name);
    if (transaction === undefined) throw parameterError(`the transaction ${quote(name)} is not open`);
    if (more === undefined) return transaction;
    const frames = transaction.sends.length + transaction.settlements.length;
    const bytes = more + keptFrameBytes;
    if (frames >= transactionFramesMax || this.#bytes + bytes > transactionBytesMax) {
      const details = `a transaction has ${transactionFramesMax} frames at most, and those of a connection ${transactionBytesMax} bytes`;
      throw new BrokerError("overQuota", { details });
    }
    transaction.bytes += bytes;
    this.#bytes += bytes;
    return transaction;
  }
}
