import { setTimeout as pause } from "node:timers/promises";
import type { Client } from "pg";
import { backoffDelayMs } from "../../../../lib/backoff.ts";
import { createDeferred } from "../../../../lib/deferred.ts";
import type { Logger } from "../../../../lib/logger.ts";
import { type Hint, hintsAfterLoss } from "../../../../ports/coordinator.ts";
import type { PostgresAddress } from "../address.ts";
import { PostgresClient } from "../client.ts";
import { toFailure } from "../errors.ts";
import { probeDelayMsMax, probeDelayMsMin } from "../limits.ts";
import { hintChannel } from "../sharing.ts";
import { parseHint } from "./hint-text.ts";
import { hintsAnswerMsMax, hintsCheckEveryMs } from "./limits.ts";

export interface HintListenerOptions {
  readonly address: PostgresAddress;
  readonly logger: Logger;
  readonly onHint: (hint: Hint) => void;
  /** Overrides of the usual limits. */
  readonly limits?: HintLimits;
}

export interface HintLimits {
  readonly checkEveryMs: number;
  readonly answerMsMax: number;
}

const usualLimits: HintLimits = { checkEveryMs: hintsCheckEveryMs, answerMsMax: hintsAnswerMsMax };

/** Receives hints on a separate connection, and reconnects whenever that connection is lost or stops answering. */
export class HintListener {
  readonly #options: HintListenerOptions;
  readonly #logger: Logger;
  readonly #limits: HintLimits;
  readonly #ending = new AbortController();
  readonly #firstTry = createDeferred<void>();
  readonly #run: Promise<void>;
  #isReported = false;

  /** Starts at once. */
  constructor(options: HintListenerOptions) {
    this.#options = options;
    this.#logger = options.logger.child({ pool: "hints" });
    this.#limits = options.limits ?? usualLimits;
    this.#run = this.#hearAlways();
  }

  /** Resolves once the first connection is made or has failed; the listener retries either way. */
  async tried(): Promise<void> {
    await this.#firstTry.promise;
  }

  async stop(): Promise<void> {
    this.#ending.abort();
    await this.#run;
  }

  async #hearAlways(): Promise<void> {
    let failures = 0;
    while (!this.#ending.signal.aborted) {
      const failure = await this.#hear(() => {
        failures = 0;
      });
      failures += 1;
      this.#firstTry.resolve();
      if (failure !== undefined) this.#report(failure);
      const bounds = { delayMsMin: probeDelayMsMin, delayMsMax: probeDelayMsMax, fraction: Math.random() };
      await rest(backoffDelayMs(failures, bounds), this.#ending.signal);
    }
  }

  /** Receives hints on one connection until the connection is lost, and returns the reason. Misses hints that were sent before the connection was made. */
  async #hear(onHeard: () => void): Promise<unknown> {
    const lost = new AbortController();
    const client = this.#createClient(lost);
    try {
      await client.connect();
      await client.query(`listen ${hintChannel}`);
      onHeard();
      this.#onHeard();
      await this.#check(client, lost.signal);
      return lost.signal.reason;
    } catch (error) {
      return error;
    } finally {
      await close(client, this.#limits.answerMsMax);
    }
  }

  #createClient(lost: AbortController): Client {
    const client = new PostgresClient({
      address: this.#options.address,
      fallback_application_name: "stele",
      connectionTimeoutMillis: this.#limits.answerMsMax,
      query_timeout: this.#limits.answerMsMax,
      keepAlive: true,
    });
    client.on("error", (error) => lost.abort(error));
    client.on("end", () => lost.abort(new Error("Connection terminated")));
    client.on("notification", ({ payload = "" }) => {
      const hint = parseHint(payload);
      if (hint !== undefined && !this.#ending.signal.aborted) this.#options.onHint(hint);
    });
    return client;
  }

  /** Runs until the connection is lost or the listener stops. @throws Error if the connection stops answering. */
  async #check(client: Client, lost: AbortSignal): Promise<void> {
    const over = AbortSignal.any([lost, this.#ending.signal]);
    for (;;) {
      await rest(this.#limits.checkEveryMs, over);
      if (over.aborted) return;
      await client.query("select 1");
    }
  }

  #onHeard(): void {
    this.#firstTry.resolve();
    if (this.#isReported) this.#logger.info("hints of other nodes received again");
    this.#isReported = false;
    if (!this.#ending.signal.aborted) hintsAfterLoss.forEach(this.#options.onHint);
  }

  #report(failure: unknown): void {
    if (this.#isReported || this.#ending.signal.aborted) return;
    this.#isReported = true;
    const { error } = toFailure(failure, this.#options.address.description);
    this.#logger.warn("hints of other nodes not received", { reason: error.message });
  }
}

async function rest(delayMs: number, signal: AbortSignal): Promise<void> {
  await pause(delayMs, undefined, { signal, ref: false }).catch(() => undefined);
}

/** Closes a connection. Waits for the server for at most `msMax` milliseconds. */
async function close(client: Client, msMax: number): Promise<void> {
  const ended = client.end().catch(() => undefined);
  await Promise.race([ended, pause(msMax, undefined, { ref: false })]);
}
