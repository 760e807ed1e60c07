import type { Duplex } from "node:stream";
import { Pool, type PoolClient, type PoolConfig } from "pg";
import type { Logger } from "../../../lib/logger.ts";
import { StoreError } from "../store-error.ts";
import type { PostgresAddress } from "./address.ts";
import { PostgresClient, type PostgresClientOptions } from "./client.ts";
import { PostgresConnection } from "./connection.ts";
import { toFailure } from "./errors.ts";
import { callsWaitingMax, connectMsMax, outageWaitMsMax, reachMsMax } from "./limits.ts";
import { Outage } from "./outage.ts";
import { PoolReport } from "./pool-report.ts";
import { reach } from "./reach.ts";
import { prepareSession, type SessionLimits } from "./session.ts";
import { valueTypes } from "./value-types.ts";

export interface PoolOptions {
  /** Name of the pool in the log. */
  readonly name: string;
  readonly address: PostgresAddress;
  readonly logger: Logger;
  readonly connectionsMax: number;
  readonly session: SessionLimits;
  /** Overrides of the usual waits. */
  readonly waits?: PoolWaits;
  /** Called with the connection of each new session. */
  readonly onSession?: (stream: Duplex) => void;
  /** See PostgresBackendOptions. */
  readonly onFault?: ((error: StoreError) => void) | undefined;
}

/** How long a call waits for a free connection, and for the return of a lost server, in milliseconds. */
export interface PoolWaits {
  readonly connectMsMax: number;
  readonly outageMsMax: number;
}

const usualWaits: PoolWaits = { connectMsMax, outageMsMax: outageWaitMsMax };

/** How long an idle connection is kept, in milliseconds. */
const idleMs = 60_000;
const keepAliveDelayMs = 10_000;

/**
 * Connections to one server, which may restart. The pool discards a broken connection, and the next call gets a new one. No failure of a connection ends
 * the process.
 */
export class ConnectionPool {
  readonly #options: PoolOptions;
  readonly #waits: PoolWaits;
  readonly #pool: Pool;
  /** Clients whose session is prepared. */
  readonly #prepared = new WeakSet<PoolClient>();
  readonly #report: PoolReport;
  /** When the server answered last, in milliseconds of `performance.now`. */
  #heardAt = Number.NEGATIVE_INFINITY;
  /** The probe of a silent server, while it is in progress. */
  #doubt: Promise<void> | undefined;
  #outage: Outage | undefined;
  #ending: Promise<void> | undefined;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#waits = options.waits ?? usualWaits;
    this.#report = new PoolReport(options.logger.child({ pool: options.name }));
    const poolOptions: PoolConfig & PostgresClientOptions = {
      address: options.address,
      Client: PostgresClient as unknown as new () => PostgresClient, // The pool passes these options to it.
      fallback_application_name: "stele",
      max: options.connectionsMax,
      connectionTimeoutMillis: this.#waits.connectMsMax,
      idleTimeoutMillis: idleMs,
      keepAlive: true,
      keepAliveInitialDelayMillis: keepAliveDelayMs,
      types: valueTypes,
    };
    this.#pool = new Pool(poolOptions);
    this.#pool.on("error", (error) => this.#report.lost(toFailure(error, this.#description).error));
    // A client on loan emits errors too; its borrower gets the error from its query.
    this.#pool.on("connect", (client) => client.on("error", () => {}));
  }

  /** @throws StoreError */
  async connect(answerMsMax: number): Promise<PostgresConnection> {
    const giveUpAt = performance.now() + this.#waits.connectMsMax + this.#waits.outageMsMax;
    for (;;) {
      await this.#outage?.wait();
      try {
        return await this.#checkOut(answerMsMax);
      } catch (thrown) {
        const { error } = toFailure(thrown, this.#description);
        if (error.fault === "exhausted") await this.#doubt;
        if (this.#ending !== undefined || performance.now() > giveUpAt) throw this.#outage?.failure ?? error;
        if (error.fault === "unavailable") this.#beginOutage(error);
        // If the server does not answer, calls that wait for a free connection time out too.
        else if (error.fault !== "exhausted" || this.#outage === undefined) throw error;
      }
    }
  }

  /** Waits for the connections on loan. */
  async end(): Promise<void> {
    this.#ending ??= this.#pool.end();
    this.#outage?.end();
    this.#report.end();
    await this.#ending;
  }

  get #description(): string {
    return this.#options.address.description;
  }

  /** Whether a new call must wait for another one to finish. */
  get isFull(): boolean {
    const { idleCount, waitingCount, totalCount } = this.#pool;
    return idleCount <= waitingCount && totalCount >= this.#options.connectionsMax;
  }

  async #checkOut(answerMsMax: number): Promise<PostgresConnection> {
    if (this.#pool.waitingCount >= callsWaitingMax) {
      throw new StoreError("exhausted", `${this.#description} has more than ${callsWaitingMax} calls waiting for it`);
    }
    const client = await this.#waitForOne();
    return new PostgresConnection(client, {
      description: this.#description,
      answerMsMax,
      onHeard: () => this.#onHeard(),
      onLost: (error) => this.#report.lost(error),
      onDamage: (error) => this.#options.onFault?.(error),
    });
  }

  /** Waits for a free connection. After a quarter of the wait, probes whether the server is busy or has stopped answering. */
  async #waitForOne(): Promise<PoolClient> {
    const since = performance.now();
    const timer = setTimeout(() => {
      if (this.#outage === undefined && this.#heardAt < since) this.#doubt ??= this.#findOut();
    }, this.#waits.connectMsMax / 4);
    try {
      return await this.#borrow();
    } finally {
      clearTimeout(timer);
    }
  }

  /** Prepares new clients here, not in the pool's hook: the pool would lose a client whose caller gave up during the hook. */
  async #borrow(): Promise<PoolClient> {
    const client = await this.#pool.connect();
    if (this.#prepared.has(client)) return client;
    try {
      await prepareSession(client, { ...this.#options, answerMsMax: this.#waits.connectMsMax });
    } catch (error) {
      client.release(true);
      throw error;
    }
    this.#prepared.add(client);
    this.#options.onSession?.(client.connection.stream);
    return client;
  }

  /** Probes outside the pool, once for all waiting calls. After an answer, calls that were already waiting do not probe again. */
  async #findOut(): Promise<void> {
    const since = performance.now();
    const failure = await this.#reach();
    this.#doubt = undefined;
    if (failure === undefined) this.#onHeard();
    else if (failure.fault === "unavailable" && this.#heardAt < since && this.#ending === undefined) {
      this.#beginOutage(failure);
    }
  }

  #onHeard(): void {
    this.#heardAt = performance.now();
    if (this.#outage === undefined) this.#report.reached();
  }

  #beginOutage(error: StoreError): void {
    this.#report.unreachable(error);
    this.#outage ??= new Outage(error, {
      probe: async () => this.#probe(),
      waitMsMax: this.#waits.outageMsMax,
    });
  }

  async #probe(): Promise<StoreError | undefined> {
    const failure = this.isFull ? await this.#reach() : await this.#tryOne();
    if (failure !== undefined) return failure;
    this.#outage = undefined;
    this.#onHeard();
    return undefined;
  }

  /** Why a connection outside the pool cannot reach the server; undefined if it can. */
  async #reach(): Promise<StoreError | undefined> {
    try {
      await reach(this.#options, this.#reachMsMax);
      return undefined;
    } catch (thrown) {
      return toFailure(thrown, this.#description).error;
    }
  }

  /** Like `#reach`, with a connection of the pool: this also finds an idle connection that broke unnoticed. */
  async #tryOne(): Promise<StoreError | undefined> {
    let client: PoolClient | undefined;
    try {
      client = await this.#borrow();
      const question = { text: "select 1", query_timeout: this.#reachMsMax };
      await client.query(question);
      client.release();
      return undefined;
    } catch (thrown) {
      const { error, isConnectionLost } = toFailure(thrown, this.#description);
      if (client !== undefined && isConnectionLost) this.#report.lost(error);
      client?.release(true);
      return error;
    }
  }

  get #reachMsMax(): number {
    return Math.min(this.#waits.connectMsMax, reachMsMax);
  }
}
