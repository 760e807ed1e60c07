import type { NodeId } from "../../domain/node.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Membership } from "./member.ts";

export interface LiveMembershipOptions {
  readonly clock: Clock;
  /** How long the coordinator keeps a node after its last message, in milliseconds. */
  readonly membershipMs: number;
  /** When the join was sent, in milliseconds of the monotonic clock. */
  readonly sentAt: number;
}

/**
 * A membership that ends by this node's own clock before it ends at the coordinator: 5/6 of `membershipMs` after this node sent the join or
 * the last answered renewal. The coordinator counts the whole `membershipMs`, from when it receives the message.
 */
export class LiveMembership implements Membership {
  readonly nodeId: NodeId;
  readonly #clock: Clock;
  readonly #trustedMs: number;
  readonly #ending = new AbortController();
  #until: number;
  #cancelTimer = (): void => {};

  constructor(nodeId: NodeId, options: LiveMembershipOptions) {
    this.nodeId = nodeId;
    this.#clock = options.clock;
    this.#trustedMs = (options.membershipMs * 5) / 6;
    this.#until = options.sentAt + this.#trustedMs;
    this.#watch();
  }

  get ended(): AbortSignal {
    return this.#ending.signal;
  }

  isLive(): boolean {
    if (this.#clock.monotonic() >= this.#until) this.end(`not renewed for ${Math.round(this.#trustedMs)} ms`);
    return !this.#ending.signal.aborted;
  }

  /** Call it when the coordinator has answered a renewal that was sent at `sentAt`. Does not revive a membership that has ended. */
  renewed(sentAt: number): void {
    if (this.isLive()) this.#until = Math.max(this.#until, sentAt + this.#trustedMs);
  }

  /** `reason` is for the log. */
  end(reason: string): void {
    this.#cancelTimer();
    this.#ending.abort(reason);
  }

  #watch(): void {
    if (!this.isLive()) return;
    this.#cancelTimer = this.#clock.after(this.#until - this.#clock.monotonic(), () => this.#watch());
  }
}
