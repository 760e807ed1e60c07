import type { Logger } from "../../../lib/logger.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { PushedBlocks } from "./pushed-blocks.ts";
import { type Header, readHeader, type Rpc } from "../endpoint/rpc.ts";

export interface HeadWatcherOptions {
  readonly rpc: Rpc;
  /** Takes the blocks that the chain hands over by itself, where it does. */
  readonly pushed: PushedBlocks;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Between two looks at an endpoint that cannot notify. */
  readonly pollMs: number;
  /** Told of every head that the endpoint names, also again, and also a lower one: it may be behind, or the chain reorganised. */
  readonly onHead: (head: Header) => void;
}

/** Knows the newest block: by subscription where the endpoint has it, by polling where not. */
export class HeadWatcher {
  readonly #options: HeadWatcherOptions;
  #latest: Header | undefined;
  /** What was heard last. */
  #last: Header | undefined;
  #subscription: unknown;
  /** Ends that the chain hands over its blocks; undefined where it does not. */
  #unfollow: (() => void) | undefined;
  #cancelPoll: (() => void) | undefined;
  #isPoking = false;
  #stopped = false;

  constructor(options: HeadWatcherOptions) {
    this.#options = options;
  }

  /** The highest block heard of since `start` or the last reorganisation. To be read after `start`. */
  get latest(): Header {
    if (this.#latest === undefined) throw new Error("the head watcher is not started");
    return this.#latest;
  }

  /** The block that was heard of last, which may be lower. To be read after `start`. */
  get last(): Header {
    return this.#last ?? this.latest;
  }

  /** What was heard before counts no more. */
  onReorganised(): void {
    this.#latest = this.#last;
  }

  get isPolling(): boolean {
    return this.#subscription === undefined && this.#unfollow === undefined;
  }

  async start(): Promise<void> {
    await this.#subscribe();
    await this.refresh();
    if (this.isPolling) this.#schedule();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelPoll?.();
    const { rpc, logger } = this.#options;
    this.#unfollow?.();
    rpc.provider.removeListener?.("message", this.#onMessage);
    if (this.#subscription === undefined) return;
    try {
      await rpc.unsubscribe(this.#subscription);
    } catch (error) {
      logger.debug("chain subscription not ended", { error });
    }
  }

  /** Asks the endpoint for its newest block. */
  async refresh(): Promise<Header> {
    const head = await this.#options.rpc.header("latest");
    this.#take(head);
    return head;
  }

  /** Asks soon, and says nothing when that fails: somebody asks again later. */
  poke(): void {
    if (!this.#isPoking) void this.#poke();
  }

  async #poke(): Promise<void> {
    this.#isPoking = true;
    try {
      await this.refresh();
    } catch (error) {
      this.#options.logger.debug("chain head not read", { error });
    } finally {
      this.#isPoking = false;
    }
  }

  async #subscribe(): Promise<void> {
    const { rpc, pushed, logger } = this.#options;
    this.#unfollow = rpc.provider.follow?.((block) => this.#take(pushed.add(block)));
    if (this.#unfollow !== undefined || rpc.provider.on === undefined) return;
    rpc.provider.on("message", this.#onMessage);
    try {
      this.#subscription = await rpc.subscribeHeads();
    } catch (error) {
      logger.info("chain endpoint without subscriptions is polled", { error });
    }
  }

  readonly #onMessage = (message: unknown): void => {
    const { type, data } = message as { type?: unknown; data?: { subscription?: unknown; result?: unknown } }; // EIP-1193; checked below.
    if (type !== "eth_subscription" || data === undefined || data.subscription !== this.#subscription) return;
    try {
      this.#take(readHeader(data.result));
    } catch (error) {
      this.#options.logger.warn("chain head not understood", { error });
      this.poke();
    }
  };

  #take(head: Header): void {
    if (this.#stopped) return;
    this.#last = head;
    if (this.#latest === undefined || head.number >= this.#latest.number) this.#latest = head;
    this.#options.onHead(head);
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#cancelPoll = this.#options.clock.after(this.#options.pollMs, () => {
      this.poke();
      this.#schedule();
    });
  }
}
