import type { Duplex } from "node:stream";
import type { Caller } from "../../engine/access/caller.ts";
import type { MemoryBudget } from "../in-flight/memory-budget.ts";
import { Connection, type ConnectionParts } from "./connection.ts";
import { LostPublishes } from "./lost-publishes.ts";
import { MqttMemory } from "./memory.ts";
import { reason } from "./reason-codes.ts";
import { KnownTopics } from "./topic-opener.ts";

export interface MqttOptions extends Omit<ConnectionParts, "known" | "losses" | "memory" | "caller" | "onClosed"> {
  /** Connections open at once, over all transports together; further ones are closed at once. */
  readonly connectionsMax: number;
  /** Memory of unfinished packets, shared with requests over HTTP. */
  readonly budget: Pick<MemoryBudget, "createHolding">;
}

/** The MQTT connections of every transport. */
export class MqttConnections {
  readonly options: MqttOptions;
  readonly #known = new KnownTopics();
  readonly #losses: LostPublishes;
  readonly #memory: MqttMemory;
  readonly #open = new Set<Connection>();

  constructor(options: MqttOptions) {
    this.options = options;
    this.#memory = new MqttMemory(options.budget);
    options.metrics.watchConnections(() => this.#open.size);
    this.#losses = new LostPublishes(options.logger, options.metrics);
  }

  serve(stream: Duplex, caller: Caller): void {
    if (this.#open.size >= this.options.connectionsMax) {
      stream.on("error", () => {}); // the client may have reset it already
      stream.destroy();
      return;
    }
    const onClosed = (closed: Connection): void => void this.#open.delete(closed);
    const shared = { known: this.#known, losses: this.#losses, memory: this.#memory };
    this.#open.add(new Connection(stream, { ...this.options, ...shared, caller, onClosed }));
  }

  /** Tells clients of 5.0 that the broker stops; what they published and was not acknowledged they will send again. */
  endAll(): void {
    for (const connection of this.#open) connection.end(reason.shuttingDown);
  }
}
