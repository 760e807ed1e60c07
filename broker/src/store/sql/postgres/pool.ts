import { callbackify } from "node:util";
import { Pool, type PoolClient } from "pg";
import type { Logger } from "../../../lib/logger.ts";
import { StoreError } from "../store-error.ts";
import type { PostgresAddress } from "./address.ts";
import { PostgresConnection } from "./connection.ts";
import { toFailure } from "./errors.ts";
import { callsWaitingMax, connectMsMax, outageWaitMsMax } from "./limits.ts";
import { Outage } from "./outage.ts";
import { prepareSession, type SessionLimits } from "./session.ts";
import { valueTypes } from "./value-types.ts";

export interface PoolOptions {
  readonly address: PostgresAddress;
  readonly logger: Logger;
  readonly connectionsMax: number;
  readonly session: SessionLimits;
  /** Other waits than the usual ones. */
  readonly waits?: PoolWaits;
}

/** How long a call waits, in milliseconds, for a connection that is free, and for the return of a lost server. */
export interface PoolWaits {
  readonly connectMsMax: number;
  readonly outageMsMax: number;
}

const usualWaits: PoolWaits = { connectMsMax, outageMsMax: outageWaitMsMax };

/** How long an idle connection is kept, in milliseconds. */
const idleMs = 60_000;
const keepAliveDelayMs = 10_000;

/**
 * Connections to one server, which may go and come back: what is broken is thrown away, and the next call gets a new one. Nothing that
 * happens to a connection ends the process.
 */
export class ConnectionPool {
  readonly #options: PoolOptions;
  readonly #waits: PoolWaits;
  readonly #pool: Pool;
  #outage: Outage | undefined;
  #ending: Promise<void> | undefined;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#waits = options.waits ?? usualWaits;
    this.#pool = new Pool({
      connectionString: options.address.connectionString,
      fallback_application_name: "stele",
      max: options.connectionsMax,
      connectionTimeoutMillis: this.#waits.connectMsMax,
      idleTimeoutMillis: idleMs,
      keepAlive: true,
      keepAliveInitialDelayMillis: keepAliveDelayMs,
      types: valueTypes,
      verify: callbackify(async (client: PoolClient) => prepareSession(client, options)),
    });
    this.#pool.on("error", (error) => this.#noteLoss(toFailure(error, this.#description).error));
    // A client emits as well while it is on loan; whoever has it learns of it by its query.
    this.#pool.on("connect", (client) => client.on("error", () => {}));
  }

  /** @throws StoreError */
  async connect(answerMsMax: number): Promise<PostgresConnection> {
    const giveUpAt = Date.now() + this.#waits.connectMsMax + this.#waits.outageMsMax;
    for (;;) {
      await this.#outage?.wait();
      try {
        return await this.#checkOut(answerMsMax);
      } catch (thrown) {
        const { error } = toFailure(thrown, this.#description);
        if (this.#ending !== undefined || Date.now() > giveUpAt) throw error;
        // Where the server does not answer, those that wait behind the ones that try are out of time as well.
        const isOut = error.fault === "unavailable" || (error.fault === "exhausted" && this.#outage !== undefined);
        if (!isOut) throw error;
        this.#beginOutage(error);
      }
    }
  }

  /** Waits for what is on loan. */
  async end(): Promise<void> {
    this.#ending ??= this.#pool.end();
    this.#outage?.end();
    await this.#ending;
  }

  get #description(): string {
    return this.#options.address.description;
  }

  async #checkOut(answerMsMax: number): Promise<PostgresConnection> {
    if (this.#pool.waitingCount >= callsWaitingMax) {
      throw new StoreError("exhausted", `${this.#description} has more than ${callsWaitingMax} calls waiting for it`);
    }
    const client = await this.#pool.connect();
    return new PostgresConnection(client, {
      description: this.#description,
      answerMsMax,
      onLost: (error) => this.#noteLoss(error),
    });
  }

  #noteLoss(error: StoreError): void {
    this.#options.logger.warn("database connection lost", { reason: error.message });
  }

  #beginOutage(error: StoreError): void {
    if (this.#outage !== undefined) return;
    this.#options.logger.warn("database unreachable", { reason: error.message });
    this.#outage = new Outage(error, {
      probe: async () => this.#probe(),
      waitMsMax: this.#waits.outageMsMax,
    });
  }

  async #probe(): Promise<StoreError | undefined> {
    let client: PoolClient;
    try {
      client = await this.#pool.connect();
    } catch (thrown) {
      return toFailure(thrown, this.#description).error;
    }
    client.release();
    this.#outage = undefined;
    this.#options.logger.info("database reached again");
    return undefined;
  }
}
