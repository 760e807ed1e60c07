import { expect, test } from "vitest";
import type { Address } from "../../../domain/topic.ts";
import { VirtualClock } from "../../../ports/testing/virtual-clock.ts";
import { BatchVerifier } from "./batch-verifier.ts";
import { BlockReader } from "./block-reader.ts";
import { Rpc } from "../endpoint/rpc.ts";
import { FakeNode } from "../testing/fake-node.ts";

const registry: Address = `0x${"12".repeat(20)}`;

test("rejects logs of a range from a chain node that lacks the last block of the range", async () => {
  const node = new FakeNode(registry);
  for (let mark = 1; mark <= 400; mark += 1) node.seal([mark]);
  const rpc = new Rpc(node);
  const clock = new VirtualClock();
  const reader = new BlockReader({ rpc, clock, registry, account: registry, verifier: new BatchVerifier() });
  const range = { after: await rpc.header(200), to: 400, blocksMax: 16, head: 400, header: undefined };
  node.behind = (method) => (method === "eth_getLogs" ? 350 : 0);
  await expect(reader.read(range)).rejects.toMatchObject({ kind: "refused" });
  node.behind = () => 0;
  expect((await reader.read(range))?.blocks.flatMap(({ entries }) => entries)).toHaveLength(16);
});
