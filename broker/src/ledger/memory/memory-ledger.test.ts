import type { Address } from "../../domain/topic.ts";
import { defaultGroupId } from "../../domain/group-id.ts";
import { describeLedger, type LedgerHarness } from "../../ports/ledger.contract.ts";
import { MemoryChain } from "./memory-chain.ts";
import { createMemoryLedger } from "./memory-ledger.ts";

const stranger: Address = `0x${"99".repeat(20)}`;
const sender: Address = `0x${"11".repeat(20)}`;
const clock = { now: () => Date.UTC(2026, 0, 1), monotonic: () => 0, after: () => () => {}, soon: () => {} };

async function createHarness(): Promise<LedgerHarness> {
  const chain = new MemoryChain({ clock });
  return {
    createLedger: () => createMemoryLedger({ groupId: defaultGroupId, chain, sender }),
    stranger: {
      open: async (name) => void chain.open(name, stranger),
      publish: async (batches) => void chain.publish(batches, { publisher: stranger }),
    },
    dispose: async () => {},
  };
}

describeLedger("MemoryLedger", createHarness);
