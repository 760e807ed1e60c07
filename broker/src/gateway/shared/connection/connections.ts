import type { Duplex } from "node:stream";
import type { Caller, Protocol } from "../../../engine/access/caller.ts";
import type { Broker } from "../../../engine/broker.ts";
import type { BoundedLog } from "../../../lib/bounded-log.ts";
import type { Logger } from "../../../lib/logger.ts";
import { inSlices } from "../../../lib/time-slices.ts";
import { createRepeatLog } from "./connection-log.ts";
import { createLoopSlices } from "../../../lib/system/loop-slices.ts";

/** One connection. Its constructor begins to serve it. */
export interface Connected {
  /** Whether it still handles or answers what its client has sent. */
  readonly isBusy: boolean;
  /** Tells the client that the broker stops, if the protocol can say so, and closes. */
  endByStop(): void;
}

export interface ConnectionsOptions {
  readonly protocol: Extract<Protocol, "MQTT" | "STOMP">;
  /** Connections open at once, over all transports together; further ones are closed immediately. */
  readonly connectionsMax: number;
  /** How long a client may take for the TLS handshake, and after that to send its CONNECT. */
  readonly connectTimeoutMs: number;
  /** Decides which new connections are admitted. */
  readonly broker: Pick<Broker, "mayConnect">;
  readonly logger: Logger;
  readonly metrics: { watchConnections(read: () => number): void };
  /** The connection calls `onClosed` once, with itself. */
  readonly create: (stream: Duplex, caller: Caller, onClosed: (closed: Connected) => void) => Connected;
}

/** The connections of one protocol, over every transport. */
export class Connections {
  readonly options: Omit<ConnectionsOptions, "create">;
  readonly #create: ConnectionsOptions["create"];
  readonly #open = new Set<Connected>();
  /**
   * Streams that count towards `connectionsMax`. A destroyed stream does not count. Nor does a stream that has ended while its connection was not busy: the
   * connection's end may still wait for its time slice, and the client may connect again meanwhile. A busy connection counts until its work ends, because its
   * work takes memory: otherwise a client could have any number of busy connections.
   */
  readonly #live = new Set<Duplex>();
  readonly #refusals: BoundedLog;
  /** The run of {@link endAll} in progress. */
  #ending: Promise<void> | undefined;

  constructor({ create, ...options }: ConnectionsOptions) {
    this.options = options;
    this.#create = create;
    this.#refusals = createRepeatLog(options.logger);
    options.metrics.watchConnections(() => this.#open.size);
  }

  serve(stream: Duplex, caller: Caller): void {
    if (this.#live.size >= this.options.connectionsMax) {
      stream.on("error", () => {}); // the client may have reset it already
      stream.destroy();
      this.refused(caller.address);
      return;
    }
    const leave = (): void => void this.#live.delete(stream);
    this.#live.add(stream);
    const onClosed = (closed: Connected): void => {
      leave();
      this.#open.delete(closed);
    };
    const connection = this.#create(stream, caller, onClosed);
    this.#open.add(connection);
    stream.once("close", leave).once("end", () => {
      if (!connection.isBusy) leave();
    });
  }

  /** Logs that a connection from `address` was closed, because {@link ConnectionsOptions.connectionsMax} are open. */
  refused(address: string | undefined): void {
    const { connectionsMax, protocol } = this.options;
    const setting = `${protocol.toLowerCase()}ConnectionsMax`;
    this.#refusals.warn(`${protocol} connection refused: the limit of open connections is reached`, {
      address,
      connectionsMax,
      setting,
    });
  }

  /**
   * Ends every connection, in slices: each takes about 0.1 ms. Has time slices of its own: tasks that share slices get only a small part of each turn, and even
   * a busy broker must stop in time. Calls by several listeners of the protocol share a run. Clients can resend unacknowledged publishes.
   */
  async endAll(): Promise<void> {
    this.#ending ??= this.#endEach().finally(() => (this.#ending = undefined));
    await this.#ending;
  }

  async #endEach(): Promise<void> {
    await inSlices(this.#open, createLoopSlices(), (connection) => connection.endByStop());
  }
}
