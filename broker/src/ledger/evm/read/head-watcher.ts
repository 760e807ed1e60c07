import type { Logger } from "../../../lib/logger.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Outage } from "../../../ports/ledger.ts";
import { type Header, readHeader, type Rpc } from "../endpoint/rpc.ts";
import { isUnanswered, toRpcFailure } from "../endpoint/rpc-failure.ts";
import type { PushedBlocks } from "./pushed-blocks.ts";
import { StalledReading } from "./stalled-reading.ts";

export interface HeadWatcherOptions {
  readonly rpc: Rpc;
  /** Receives the blocks that the embedded chain pushes. */
  readonly pushed: PushedBlocks;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Pause between two polls of an endpoint that does not notify, in milliseconds. */
  readonly pollMs: number;
}

/** The one source of heads: blocks that the embedded chain pushes, a subscription while the endpoint in use notifies, otherwise polling. */
export class HeadWatcher {
  readonly #options: HeadWatcherOptions;
  #latest: Header | undefined;
  #last: Header | undefined;
  readonly #stall: StalledReading;
  /** Whether the last request for the newest block failed. */
  #isFailing = false;
  /** Ends the reports of heads; undefined if the provider offers none, or pushes its blocks. */
  #unsubscribe: (() => Promise<void>) | undefined;
  /** Stops the embedded chain from pushing its blocks; undefined for other chains. */
  #unfollow: (() => void) | undefined;
  #cancelPoll: (() => void) | undefined;
  readonly #listeners: ((head: Header) => void)[] = [];
  #isPoking = false;
  #stopped = false;

  constructor(options: HeadWatcherOptions) {
    this.#options = options;
    this.#stall = new StalledReading(options);
  }

  /** Why the newest block has been unreadable for too long, although the endpoint answers; undefined while it is read. */
  get outage(): Outage | undefined {
    return this.#stall.isRefused ? this.#stall.outage : undefined;
  }

  /** The highest block since `start` or the last `forget`. Read it after `start`. */
  get latest(): Header {
    return this.#latest ?? this.last;
  }

  /** The block that the endpoint named last, which may be lower than `latest`. Read it after `start`. */
  get last(): Header {
    if (this.#last === undefined) throw new Error("the head watcher is not started");
    return this.#last;
  }

  /** Forgets the highest block, which is one of an old branch or of another chain: the next one may be lower. */
  forget(): void {
    this.#latest = undefined;
  }

  /** Whether the newest block is polled at present. */
  get isPolling(): boolean {
    if (this.#unfollow !== undefined) return false;
    return this.#unsubscribe === undefined || this.#options.rpc.provider.isNotifying?.() === false;
  }

  /** Calls `listener` with each head that the endpoint names: repeated ones too, and lower ones after a reorg or from a lagging chain node. */
  listen(listener: (head: Header) => void): void {
    this.#listeners.push(listener);
  }

  async start(): Promise<void> {
    await this.#subscribe();
    await this.refresh();
    if (this.#unfollow === undefined) this.#schedule();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelPoll?.();
    this.#unfollow?.();
    await this.#unsubscribe?.();
  }

  async refresh(): Promise<Header> {
    const head = await this.#options.rpc.header("latest");
    this.#take(head);
    return head;
  }

  /** Asks for the newest block in the background. */
  poke(): void {
    if (!this.#isPoking) void this.#poke();
  }

  async #poke(): Promise<void> {
    this.#isPoking = true;
    try {
      await this.refresh();
    } catch (error) {
      // Not for the embedded chain: it pushes its blocks, so nothing would ask it again and clear the failure.
      if (this.#unfollow === undefined) this.#onUnread(error);
    } finally {
      this.#isPoking = false;
    }
  }

  /** Polls until the newest block is read, even if the endpoint notifies. Reports only refusals: the connections report missing answers themselves. */
  #onUnread(error: unknown): void {
    this.#isFailing = true;
    if (isUnanswered(toRpcFailure(error))) this.#options.logger.debug("chain head not read", { error });
    else this.#stall.failed("the newest block", error);
  }

  async #subscribe(): Promise<void> {
    const { rpc, pushed } = this.#options;
    const { provider } = rpc;
    this.#unfollow = provider.follow?.((block) => this.#take(pushed.add(block)));
    if (this.#unfollow === undefined)
      this.#unsubscribe = await provider.subscribeHeads?.((head) => this.#onNotified(head));
  }

  #onNotified(head: unknown): void {
    try {
      this.#take(readHeader(head));
    } catch (error) {
      this.#options.logger.warn("chain endpoint notified an invalid head", { error });
      this.poke();
    }
  }

  #take(head: Header): void {
    if (this.#stopped) return;
    this.#isFailing = false;
    this.#stall.done();
    this.#last = head;
    if (this.#latest === undefined || head.number >= this.#latest.number) this.#latest = head;
    for (const listener of this.#listeners) listener(head);
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#cancelPoll = this.#options.clock.after(this.#options.pollMs, () => {
      if (this.isPolling || this.#isFailing) this.poke();
      this.#schedule();
    });
  }
}
