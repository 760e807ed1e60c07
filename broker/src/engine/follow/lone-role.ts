import { ReportedTrouble } from "../../lib/reported-trouble.ts";
import type { Randomness } from "../../ports/randomness.ts";
import type { EngineLimits } from "../limits.ts";
import { pause } from "../../lib/pause.ts";
import { Follower, type FollowerOptions } from "./follower.ts";
import { type Role, untilCaughtUp } from "./role.ts";
import { retryDelayMs } from "./term.ts";

export interface LoneRoleOptions extends FollowerOptions {
  readonly randomness: Randomness;
  readonly limits: EngineLimits;
}

/** The role of a single node: it follows the chain, and retries after each failure. */
export class LoneRole implements Role {
  readonly epoch = 0;
  readonly #options: LoneRoleOptions;
  readonly #follower: Follower;
  readonly #trouble: ReportedTrouble;
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;

  constructor(options: LoneRoleOptions) {
    this.#options = options;
    this.#trouble = new ReportedTrouble(options.logger, "following failed", "following again");
    this.#follower = new Follower(options);
  }

  /** @throws Error if the index was made from another chain, and what ledger and store throw. */
  async start(signal: AbortSignal): Promise<void> {
    if (this.#running === undefined) await this.#begin(signal);
    await untilCaughtUp(this.#options, signal);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #begin(signal: AbortSignal): Promise<void> {
    const { ledger, store, progress, health, logger } = this.#options;
    const head = await store.findHead(ledger.groupId);
    progress.advanceTo(head?.blockNumber ?? -1);
    await this.#follower.begin(head && { number: head.blockNumber, hash: head.hash }, signal);
    const target = await ledger.finalBlockNumber(signal);
    health.follows();
    this.#running = this.#run();
    if (target > progress.blockNumber) logger.info("index catching up", { from: progress.blockNumber, to: target });
  }

  async #run(): Promise<void> {
    const { ledger, progress, health, restarter, clock, limits } = this.#options;
    const { signal } = this.#stopping;
    for (let failures = 0; !signal.aborted; ) {
      try {
        if (restarter.isDue) await restarter.restart();
        // Callers may wait for a block that the chain has removed: end their waits.
        if (failures > 0 && !ledger.isFinal) progress.rollBackTo(this.#follower.head?.number ?? -1);
        await this.#follower.follow(signal, () => {
          failures = 0;
          this.#trouble.done();
          health.follows();
        });
      } catch (error) {
        failures += 1;
        health.failed(error);
        this.#trouble.failed(error);
        await pause(clock, retryDelayMs(failures, { ...this.#options, delayMsMax: limits.followDelayMsMax }), signal);
      }
    }
  }
}
