import { parseTransaction } from "viem";
import { expect, test } from "vitest";
import { pause } from "../../../lib/pause.ts";
import { SenderWorld } from "../testing/sender-world.ts";
import { hashOf, TestJournal } from "../testing/writer-world.ts";

const gas = 50_000;
const reverted = {
  blockHash: `0x${"11".repeat(32)}`,
  blockNumber: "0x1",
  status: "0x0",
  gasUsed: `0x${gas.toString(16)}`,
  logs: [],
};

test.each([
  ["without a journal", {}],
  ["with a journal", { journal: new TestJournal() }],
])(
  "after a transaction ran out of gas, sends exactly one in its place, even if a late answer refuses the old transaction, %s",
  async (_, options) => {
    const world = new SenderWorld(options);
    const { node, clock, sender } = world;
    await world.send(1, { mayRevert: true });
    const [first = "0x"] = node.pool;
    node.before = async (method) => {
      if (method === "eth_sendRawTransaction") await pause(clock, 3000);
    };
    node.onSend = (raw) => {
      if (raw === first) throw Object.assign(new Error("nonce too low"), { code: -32_000 });
    };
    await clock.advance(1500); // The sender resends the transaction; the answer takes 3 s.
    const request = node.request.bind(node);
    node.request = async (call) =>
      call.method === "eth_getTransactionReceipt" && call.params?.[0] === hashOf(first) ? reverted : request(call);
    node.pool.clear();
    node.included.add(hashOf(first));
    world.readUpTo = 1;
    sender.onRound({ logs: [] });
    await clock.advance(20_000);
    expect([...node.pool].map((raw) => parseTransaction(raw).nonce)).toEqual([1]);
  },
);
