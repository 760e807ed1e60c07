import { afterEach, describe, expect, it, vi } from "vitest";
import { silentLogger } from "../../../lib/logger.ts";
import { VirtualClock } from "../../../ports/testing/virtual-clock.ts";
import { EndpointSet, type EndpointSetOptions } from "./endpoint-set.ts";
import { FakeNode } from "./testing/fake-node.ts";
import { FastClock } from "./testing/fast-clock.ts";

let sets: EndpointSet[] = [];
let nodes: FakeNode[] = [];

afterEach(async () => {
  await Promise.all(sets.map((set) => set.close()));
  await Promise.all(nodes.map((node) => node[Symbol.asyncDispose]()));
  sets = [];
  nodes = [];
});

async function startNodes<const Count extends 1 | 2 | 3>(count: Count) {
  const started = await Promise.all(Array.from({ length: count }, () => FakeNode.start()));
  nodes.push(...started);
  type Two = [FakeNode, FakeNode];
  return started as unknown as Count extends 1 ? [FakeNode] : Count extends 2 ? Two : [...Two, FakeNode]; // Its length is `count`.
}

function createSet(addresses: readonly string[], options: Partial<EndpointSetOptions> = {}): EndpointSet {
  // A faster clock would leave too little time to connect on a busy machine.
  const clock = new FastClock(25);
  const set = new EndpointSet({ addresses, clock, logger: silentLogger, timeoutMs: 20_000, ...options });
  sets.push(set);
  return set;
}

const until = (check: () => unknown): Promise<unknown> => vi.waitFor(check, { timeout: 20_000, interval: 10 });

/** Subscribes to heads; returns the number of each head that the set announces, and a function that ends the subscription. */
async function subscribe(set: EndpointSet) {
  const heads: unknown[] = [];
  const end = await set.subscribeHeads((head) => heads.push((head as { readonly number: unknown }).number)); // A block.
  return { heads, end };
}

const refusal = { code: -32_000, message: "too many subscriptions" };

/** Answers like the chain node, but refuses subscriptions. */
const refuseSubscription =
  (node: FakeNode) =>
  ({ id, method }: { readonly id: number; readonly method: string }) =>
    method === "eth_subscribe" ? { id, error: refusal } : { id, result: node.chain.answer(method) };

/** Answers like the chain node, but closes the connection instead of answering one method. */
const lose =
  (node: FakeNode, lost: string) =>
  ({ id, method }: { readonly id: number; readonly method: string }) => {
    if (method === lost) node.drop();
    return { id, result: node.chain.answer(method) };
  };

describe("subscriptions", () => {
  it("asks for no subscription at an endpoint that cannot notify, and isNotifying returns false", async () => {
    const [node] = await startNodes(1);
    const set = createSet([node.url()]);
    await subscribe(set);
    expect(set.isNotifying()).toBe(false);
    expect(node.count("eth_subscribe")).toBe(0);
  });

  it("continues a subscription after a reconnect", async () => {
    const [node] = await startNodes(1);
    const set = createSet([node.url("ws")]);
    const { heads } = await subscribe(set);
    node.chain.head = 101;
    node.notifyHead();
    await until(() => expect(heads).toContain("0x65"));
    node.chain.head = 102;
    node.drop();
    await until(() => expect(node.count("eth_subscribe")).toBe(2));
    await until(() => expect(heads.at(-1)).toBe("0x66"));
    node.chain.head = 103;
    node.notifyHead();
    await until(() => expect(heads).toContain("0x67"));
  });

  it("detaches a subscription while the endpoint in use cannot notify, and attaches it to one that can", async () => {
    const [first, second] = await startNodes(2);
    const set = createSet([first.url("ws"), second.url()]);
    const { heads } = await subscribe(set);
    expect(set.isNotifying()).toBe(true);
    first.acceptsWebSockets = false;
    first.drop();
    await until(() => expect(set.isNotifying()).toBe(false));
    first.chain.head = 101;
    second.chain.head = 101;
    first.acceptsWebSockets = true;
    await until(() => expect(first.count("eth_subscribe")).toBe(2));
    await until(() => expect(heads.at(-1)).toBe("0x65"));
    expect(set.isNotifying()).toBe(true);
  });

  it("keeps the subscription at the next endpoint while the first one answers again but lags", async () => {
    const [first, second] = await startNodes(2);
    const set = createSet([first.url("ws"), second.url("ws")]);
    await subscribe(set);
    first.acceptsWebSockets = false;
    first.drop();
    await until(() => expect(second.count("eth_subscribe")).toBe(1));
    first.chain.head = 50;
    first.acceptsWebSockets = true;
    const asked = first.count("eth_blockNumber");
    await until(() => expect(first.count("eth_blockNumber")).toBeGreaterThan(asked + 1));
    expect(first.count("eth_subscribe")).toBe(1);
    first.chain.head = 100;
    await until(() => expect(first.count("eth_subscribe")).toBe(2));
  });

  it("attaches a subscription later if the endpoint refused the first attempt", async () => {
    const [node] = await startNodes(1);
    const set = createSet([node.url("ws")]);
    node.answer = refuseSubscription(node);
    const { heads } = await subscribe(set);
    expect(set.isNotifying()).toBe(false);
    node.answer = undefined;
    await until(() => expect(set.isNotifying()).toBe(true));
    node.chain.head = 101;
    node.notifyHead();
    await until(() => expect(heads).toContain("0x65"));
  });

  it("subscribes again half a second after a lost connection, and waits longer if that attempt also loses the connection", async () => {
    const [node] = await startNodes(1);
    const clock = new VirtualClock();
    const messages: string[] = [];
    const note = (message: string): void => void messages.push(message);
    const logger = { ...silentLogger, debug: note, warn: note };
    const set = createSet([node.url("ws")], { clock, logger, timeoutMs: 600_000 });
    node.answer = lose(node, "eth_subscribe");
    await subscribe(set);
    expect(messages).toEqual(["chain subscription not renewed"]);
    await clock.advance(500);
    await until(() => expect(messages.slice(1)).toEqual(["chain endpoint gave no subscription, polling it"]));
    node.answer = undefined;
    await clock.advance(500);
    await until(() => expect(node.count("eth_blockNumber")).toBe(2));
    await set.request({ method: "eth_any" });
    expect(node.count("eth_subscribe")).toBe(2);
  });

  it("renews a subscription half a second after the first of several lost connections", async () => {
    const [node] = await startNodes(1);
    const clock = new VirtualClock();
    const set = createSet([node.url("ws")], { clock });
    await subscribe(set);
    node.answer = lose(node, "eth_lose");
    for (let lost = 1; lost <= 2; lost += 1) {
      await expect(set.request({ method: "eth_lose" })).rejects.toThrow();
      await clock.advance(300);
      await set.request({ method: "eth_any" });
    }
    await until(() => expect(node.count("eth_subscribe")).toBe(2));
  });

  it("reports the newest block if the endpoint stops notifying", async () => {
    const [node] = await startNodes(1);
    const set = createSet([node.url("ws")]);
    const { heads } = await subscribe(set);
    node.chain.head = 150;
    await until(() => expect(heads.at(-1)).toBe("0x96"));
  });

  it("reports no head of an endpoint that serves another chain behind the same connection, and subscribes again later", async () => {
    const [node] = await startNodes(1);
    const set = createSet([node.url("ws")]);
    const { heads } = await subscribe(set);
    const { genesis } = node.chain;
    Object.assign(node.chain, { genesis: `0x${"01".repeat(32)}`, head: 5000 });
    node.notifyHead();
    await until(() => expect(heads).toContain("0x1388"));
    heads.length = 0;
    set.doubtChain();
    await expect(set.request({ method: "eth_any" })).rejects.toMatchObject({ reach: "unreached" });
    expect(set.isNotifying()).toBe(false);
    node.notifyHead();
    Object.assign(node.chain, { genesis, head: 101 });
    await until(() => expect(heads.at(-1)).toBe("0x65"));
    expect(heads).not.toContain("0x1388");
    expect(set.isNotifying()).toBe(true);
    node.chain.head = 102; // The endpoint does not announce it.
    await until(() => expect(heads.at(-1)).toBe("0x66"));
  });

  it("moves to the next endpoint within half a second if a request finds another chain at the one in use", async () => {
    const [first, second] = await startNodes(2);
    const clock = new VirtualClock();
    const set = createSet([first.url("ws"), second.url("ws")], { clock });
    await subscribe(set);
    first.chain.genesis = `0x${"01".repeat(32)}`;
    set.doubtChain();
    await set.request({ method: "eth_any" });
    expect(set.isNotifying()).toBe(false);
    await clock.advance(500);
    await until(() => expect(second.count("eth_subscribe")).toBe(1));
    await until(() => expect(set.isNotifying()).toBe(true));
  });

  it("renews and moves a subscription within half a second even while a health check waits for a silent endpoint", async () => {
    const [first, second, silent] = await startNodes(3);
    silent.exchange = () => {};
    const clock = new VirtualClock();
    const addresses = [first.url("ws"), second.url("ws"), silent.url()];
    const set = createSet(addresses, { clock, timeoutMs: 60_000 }); // Over HTTP in real time: longer than `until` waits.
    await subscribe(set);
    await clock.advance(5_000);
    for (const { methods } of [first, second]) await until(() => expect(methods).toContain("eth_blockNumber"));
    first.drop();
    await until(() => expect(set.isNotifying()).toBe(false));
    await clock.advance(500);
    await until(() => expect(set.isNotifying()).toBe(true));
    first.chain.genesis = `0x${"01".repeat(32)}`;
    set.doubtChain();
    await set.request({ method: "eth_any" });
    await clock.advance(500);
    await until(() => expect(second.count("eth_subscribe")).toBe(1));
  });

  it("moves to the next endpoint even while the silent one owes the answer to a subscription request", async () => {
    const [first, second] = await startNodes(2);
    const clock = new VirtualClock();
    const set = createSet([first.url("ws"), second.url("ws")], { clock });
    await subscribe(set);
    first.answer = () => {};
    await clock.advance(5_000);
    await until(() => expect(second.count("eth_blockNumber")).toBe(1));
    await clock.advance(20_000);
    await until(() => expect(set.isNotifying()).toBe(true));
    expect(second.count("eth_subscribe")).toBe(1);
  });

  it("reports no head of a subscription that was cancelled", async () => {
    const [node] = await startNodes(1);
    const set = createSet([node.url("ws")]);
    const { heads, end } = await subscribe(set);
    await end();
    const before = heads.length; // 0, unless a health check reported a head meanwhile.
    node.notifyHead();
    await set.request({ method: "eth_any" });
    expect(heads).toHaveLength(before);
  });
});
