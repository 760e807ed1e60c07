import { expect, it, vi } from "vitest";
import { silentLogger } from "../../../lib/logger.ts";
import { EndpointSet } from "./endpoint-set.ts";
import { FakeNode } from "./testing/fake-node.ts";
import { FastClock } from "./testing/fast-clock.ts";

/** Asks until this node gives the answer. */
async function untilAnsweredBy(node: FakeNode, set: EndpointSet): Promise<void> {
  const check = async (): Promise<void> => {
    await set.request({ method: "eth_any" });
    expect(node.methods.at(-1)).toBe("eth_any");
  };
  await vi.waitFor(check, { timeout: 20_000, interval: 10 });
}

function createSet(nodes: readonly FakeNode[]): EndpointSet {
  const addresses = nodes.map((node) => node.url());
  return new EndpointSet({ addresses, clock: new FastClock(25), logger: silentLogger, timeoutMs: 20_000 });
}

/** Makes the node answer a method with "0x", as nodes do that have no number. */
function breakAnswer(node: FakeNode, broken: string): void {
  node.answer = ({ id, method }) => ({ id, result: method === broken ? "0x" : node.chain.answer(method) });
}

it("leaves a lagging endpoint though another one returns no block number", async () => {
  await using first = await FakeNode.start();
  await using second = await FakeNode.start();
  await using third = await FakeNode.start();
  breakAnswer(third, "eth_blockNumber");
  const set = createSet([first, second, third]);
  await untilAnsweredBy(first, set);
  second.chain.head = 110;
  await untilAnsweredBy(second, set);
  await set.close();
});

it("expects no chain of an endpoint that returned no chain id", async () => {
  await using first = await FakeNode.start();
  await using second = await FakeNode.start();
  breakAnswer(first, "eth_chainId");
  const set = createSet([first, second]);
  await set.request({ method: "eth_any" });
  first.answer = undefined;
  first.drop();
  await untilAnsweredBy(first, set);
  await set.close();
});
