import { afterEach, describe, expect, it } from "vitest";
import type { Address } from "../../../domain/topic.ts";
import { silentLogger } from "../../../lib/logger.ts";
import { VirtualClock } from "../../../ports/testing/virtual-clock.ts";
import { type EvmProvider, Rpc } from "../endpoint/rpc.ts";
import { HeadWatcher } from "./head-watcher.ts";
import { PushedBlocks } from "./pushed-blocks.ts";

const pollMs = 1000;
const registry: Address = `0x${"ab".repeat(20)}`;

/** An endpoint whose newest block the test sets. */
class Endpoint implements EvmProvider {
  head = 1;
  polls = 0;
  isAttached = true;
  canNotify = true;
  /** If set, answers each request for the newest block with this error. */
  headError: Error | undefined;
  #listener: ((head: unknown) => void) | undefined;

  async subscribeHeads(listener: (head: unknown) => void): Promise<() => Promise<void>> {
    this.#listener = listener;
    return async () => {};
  }

  isNotifying(): boolean {
    return this.isAttached;
  }

  notify(head: number): void {
    this.head = head;
    this.#listener?.(this.#block());
  }

  async request({ method }: { readonly method: string }): Promise<unknown> {
    this.polls += method === "eth_getBlockByNumber" ? 1 : 0;
    if (method === "eth_getBlockByNumber" && this.headError !== undefined) throw this.headError;
    return method === "eth_getBlockByNumber" ? this.#block() : true;
  }

  #block() {
    const hash = `0x${this.head.toString(16).padStart(64, "0")}`;
    return { number: `0x${this.head.toString(16)}`, hash, parentHash: hash, timestamp: "0x1", gasLimit: "0x1" };
  }
}

describe("HeadWatcher", () => {
  const endpoint = new Endpoint();
  const clock = new VirtualClock();
  const heads: number[] = [];
  let watcher: HeadWatcher;

  async function start(): Promise<void> {
    const provider = endpoint.canNotify ? endpoint : { request: endpoint.request.bind(endpoint) };
    const options = { rpc: new Rpc(provider), pushed: new PushedBlocks(registry), clock, logger: silentLogger, pollMs };
    watcher = new HeadWatcher(options);
    watcher.listen(({ number }) => heads.push(number));
    await watcher.start();
    endpoint.polls = 0;
  }

  afterEach(async () => {
    await watcher.stop();
    Object.assign(endpoint, { head: 1, isAttached: true, canNotify: true, headError: undefined });
    heads.length = 0;
  });

  it("does not poll while the endpoint notifies", async () => {
    await start();
    endpoint.notify(2);
    await clock.advance(10 * pollMs);
    expect(heads).toEqual([1, 2]);
    expect(endpoint.polls).toBe(0);
  });

  it("polls while no endpoint serves the subscription, and stops once one does", async () => {
    await start();
    endpoint.isAttached = false;
    endpoint.head = 3;
    await clock.advance(2 * pollMs);
    expect(heads).toEqual([1, 3, 3]);
    endpoint.isAttached = true;
    await clock.advance(10 * pollMs);
    expect(endpoint.polls).toBe(2);
  });

  it("names the highest block, and after a call of forget the highest one since then", async () => {
    await start();
    for (const head of [20, 3]) endpoint.notify(head);
    expect([watcher.latest.number, watcher.last.number]).toEqual([20, 3]);
    watcher.forget();
    for (const head of [4, 6, 5]) endpoint.notify(head);
    expect([watcher.latest.number, watcher.last.number]).toEqual([6, 5]);
  });

  it("polls an endpoint that cannot notify", async () => {
    endpoint.canNotify = false;
    await start();
    await clock.advance(3 * pollMs);
    expect(endpoint.polls).toBe(3);
  });

  it.each([true, false])(
    "reports an outage while the endpoint answers requests for the newest block with an error (endpoint can notify: %s)",
    async (canNotify) => {
      endpoint.canNotify = canNotify;
      await start();
      endpoint.headError = Object.assign(new Error("missing trie node"), { code: -32_000 });
      watcher.poke();
      await clock.advance(4 * pollMs);
      expect(watcher.outage).toBeUndefined();
      await clock.advance(2 * pollMs);
      expect(watcher.outage?.reason).toMatch(
        /^cannot read the newest block: eth_getBlockByNumber: missing trie node \(since .*Z\)$/,
      );
      endpoint.headError = undefined;
      await clock.advance(2 * pollMs);
      expect(watcher.outage).toBeUndefined();
    },
  );

  it("reports no outage for an endpoint that does not answer, since its connection reports it", async () => {
    await start();
    endpoint.headError = new Error("connect ECONNREFUSED");
    watcher.poke();
    await clock.advance(20 * pollMs);
    expect(watcher.outage).toBeUndefined();
  });
});
