import type { Logger } from "../../../lib/logger.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Outage } from "../../../ports/ledger.ts";
import { type Header, readHeader, type Rpc } from "../endpoint/rpc.ts";
import { isUnanswered, toRpcFailure } from "../endpoint/rpc-failure.ts";
import type { PushedBlocks } from "./pushed-blocks.ts";
import { StalledReading } from "./stalled-reading.ts";

/** How long an endpoint that notifies may name no higher block until it is asked for one, in milliseconds: it may have stopped to notify. */
const silentMs = 5_000;

export interface HeadWatcherOptions {
  readonly rpc: Rpc;
  /** Receives the blocks that the embedded chain pushes. */
  readonly pushed: PushedBlocks;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Pause between two polls of an endpoint that does not notify, in milliseconds. */
  readonly pollMs: number;
}

/** The one source of heads: blocks that the embedded chain pushes, a subscription while an endpoint notifies, otherwise polling. A head may come twice. */
export class HeadWatcher {
  readonly #options: HeadWatcherOptions;
  #latest: Header | undefined;
  #last: Header | undefined;
  /** Since when the endpoint has named no higher block, and was not asked because of that, on the monotonic clock. */
  #silentSince = Number.NEGATIVE_INFINITY;
  readonly #stall: StalledReading;
  /** Whether the last request for the newest block failed that was not a mere check. */
  #isFailing = false;
  /** Ends the subscription; undefined if the endpoint cannot notify. */
  #unsubscribe: (() => Promise<void>) | undefined;
  /** Stops the embedded chain from pushing its blocks; undefined for other chains. */
  #unfollow: (() => void) | undefined;
  #cancelPoll: (() => void) | undefined;
  readonly #listeners: ((head: Header) => void)[] = [];
  #isPoking = false;
  /** Whether an endpoint that notifies may have left out a head since the last request for the newest block began. */
  #isCheckDue = false;
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

  /** Asks an endpoint that notifies whether it left out a head. The answer to an earlier request does not tell. */
  #check(): void {
    this.#isCheckDue = true;
    this.poke();
  }

  async #poke(): Promise<void> {
    const isCheck = this.#isCheckDue;
    this.#isCheckDue = false;
    this.#isPoking = true;
    try {
      await this.refresh();
    } catch (error) {
      // No outage: the endpoint probably left out nothing, and names the next block itself.
      if (isCheck) this.#options.logger.debug("chain head not checked", { error });
      // The embedded chain pushes its blocks: nothing would ask it again.
      else if (this.#unfollow === undefined) this.#onUnread(error);
    } finally {
      this.#isPoking = false;
    }
    if (this.#isCheckDue) this.poke();
  }

  /** Has the newest block polled until it is read, even if the endpoint notifies. Connections report missing answers themselves. */
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
    if (head === undefined) return this.#check();
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
    const newest = this.#latest?.number ?? -1;
    if (head.number > newest) this.#silentSince = this.#options.clock.monotonic();
    if (head.number >= newest) this.#latest = head;
    for (const listener of this.#listeners) listener(head);
  }

  #schedule(): void {
    if (this.#stopped) return;
    const { clock, pollMs } = this.#options;
    this.#cancelPoll = clock.after(this.isPolling ? pollMs : Math.min(pollMs, silentMs), () => {
      if (this.isPolling || this.#isFailing) this.poke();
      else this.#checkIfSilent();
      this.#schedule();
    });
  }

  #checkIfSilent(): void {
    const now = this.#options.clock.monotonic();
    if (now - this.#silentSince < silentMs) return;
    this.#silentSince = now;
    this.#check();
  }
}
