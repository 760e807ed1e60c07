import type { Client, Holding, MemoryBudget } from "../../in-flight/memory-budget.ts";
import { unfinishedBytesMin, unreadBytesMax } from "./limits.ts";

/** Bytes that wait for clients that read slowly, over all connections. */
export class UnreadBytes {
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(bytesMax = unreadBytesMax) {
    this.#bytesMax = bytesMax;
  }

  get hasRoom(): boolean {
    return this.#bytes < this.#bytesMax;
  }

  add(bytes: number): void {
    this.#bytes += bytes;
  }
}

/** The memory that the connections of every protocol share. */
export class ConnectionMemory {
  readonly unread = new UnreadBytes();
  readonly #budget: Pick<MemoryBudget, "createHolding">;

  /** Requests in flight share the budget. When it runs out, the clients with the earliest deadlines are disconnected. */
  constructor(budget: Pick<MemoryBudget, "createHolding">) {
    this.#budget = budget;
  }

  hold(client: Client): UnfinishedInput {
    return new UnfinishedInput(() => this.#budget.createHolding(), client);
  }
}

/** Counts the bytes that one connection holds: unfinished packets or frames, publishes that wait, and filters. */
export class UnfinishedInput implements Client {
  readonly #createHolding: () => Holding;
  readonly #client: Client;
  #holding: Holding | undefined;
  #bytes = 0;

  constructor(createHolding: () => Holding, client: Client) {
    this.#createHolding = createHolding;
    this.#client = client;
  }

  get socket(): Client["socket"] {
    return this.#client.socket;
  }

  end(reason: Parameters<Client["end"]>[0]): void {
    this.#client.end(reason);
  }

  /** Always true: a client past its deadline gets a new one, and is disconnected only when others need the memory. */
  isExcused(): boolean {
    return true;
  }

  /** Sets the number of bytes that are held now. Fewer than `unfinishedBytesMin` count as none. */
  hold(bytes: number): void {
    if (bytes < unfinishedBytesMin) {
      if (this.#holding !== undefined) this.release();
      return;
    }
    if (bytes < this.#bytes) this.release();
    if (this.#holding === undefined) {
      this.#holding = this.#createHolding();
      this.#holding.awaitClient(this);
    }
    const more = bytes - this.#bytes;
    this.#bytes = bytes;
    if (more > 0) this.#holding.take(more); // may end this connection, and so release what it holds
  }

  release(): void {
    this.#holding?.release();
    this.#holding = undefined;
    this.#bytes = 0;
  }
}
