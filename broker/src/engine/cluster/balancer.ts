import type { Logger } from "../../lib/logger.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Coordinator } from "../../ports/coordinator.ts";
import type { EngineLimits } from "../limits.ts";
import type { Member } from "./member.ts";
import { Recurrence } from "./recurrence.ts";
import { whileMember } from "./while-member.ts";

export interface BalancerOptions {
  readonly coordinator: Coordinator;
  readonly member: Member;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: EngineLimits;
}

/** Periodically asks the coordinator to spread subscriptions evenly over the nodes. Every node runs a balancer. */
export class Balancer {
  readonly #options: BalancerOptions;
  readonly #recurrence: Recurrence;
  readonly #stopping = new AbortController();
  #unlisten = (): void => {};

  constructor(options: BalancerOptions) {
    this.#options = options;
    const { balanceEveryMs: everyMs, claimPollMs: restMs } = options.limits;
    this.#recurrence = new Recurrence({
      ...options,
      everyMs,
      restMs,
      failed: "subscriptions not balanced, trying again",
    });
  }

  start(): void {
    this.#unlisten = this.#options.member.onHint((hint) => {
      if (hint.kind === "nodes") this.lookSoon();
    });
    void this.#run();
  }

  lookSoon(): void {
    this.#recurrence.ask();
  }

  stop(): void {
    this.#unlisten();
    this.#stopping.abort();
  }

  async #run(): Promise<void> {
    await whileMember(this.#options.member, this.#stopping.signal, (nodeId, signal) =>
      this.#recurrence.run(() => this.#balance(nodeId), signal),
    );
  }

  async #balance(nodeId: Parameters<Coordinator["balance"]>[0]): Promise<void> {
    const { coordinator, logger } = this.#options;
    const { assigned, requested } = await coordinator.balance(nodeId);
    if (assigned + requested === 0) return;
    logger.info("subscriptions balanced", { given: assigned, asked: requested });
  }
}
