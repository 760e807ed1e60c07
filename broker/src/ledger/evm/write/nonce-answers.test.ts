import { parseTransaction } from "viem";
import { expect, test } from "vitest";
import { SenderWorld } from "../testing/sender-world.ts";

test.each(["0x", "", null, {}, "0xzz"])(
  "sends once the node counts transactions, after it answered %j",
  async (answer) => {
    const world = new SenderWorld();
    const { node } = world;
    const request = node.request.bind(node);
    let isOdd = true;
    node.request = async (call) => (call.method === "eth_getTransactionCount" && isOdd ? answer : request(call));
    await world.send(1);
    await world.clock.advance(1000);
    isOdd = false;
    await world.clock.advance(1000);
    await world.send(2);
    expect([...node.pool].map((raw) => parseTransaction(raw).nonce ?? 0)).toEqual([0, 1, 2]);
  },
);
