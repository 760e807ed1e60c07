import { expect, it, onTestFinished } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { createMemoryLedger } from "../../ledger/memory/memory-ledger.ts";
import { TestEngine } from "../testing/test-engine.ts";
import { findAncestor } from "./find-ancestor.ts";

const { signal } = new AbortController();

it("throws if the second answer has a block that the first one lacked", async () => {
  const engine = await TestEngine.start({ confirmations: 0 });
  onTestFinished(() => engine.stop());
  await engine.broker.open({ topic: "a", groupId: undefined });
  await engine.publishMany("a", 5);
  const ledger = createMemoryLedger({ groupId: defaultGroupId, chain: engine.chain, isFinal: false });
  await ledger.start();
  const findBlockHash = ledger.findBlockHash.bind(ledger);
  let asked = 0;
  ledger.findBlockHash = async (...call) => {
    asked += 1;
    return asked === 1 ? `0x${"99".repeat(32)}` : findBlockHash(...call);
  };
  await expect(findAncestor(ledger, engine.store, { signal })).rejects.toThrow("block 6 is on the chain again");
  expect(await findAncestor(ledger, engine.store, { signal })).toMatchObject({ number: 6 });
  engine.chain.cutBack(3);
  expect(await findAncestor(ledger, engine.store, { signal })).toMatchObject({ number: 3 });
});
