import { expect, test } from "vitest";
import { defaultGroupId } from "../../domain/group-id.ts";
import { silentLogger } from "../../lib/logger.ts";
import type { ChainCheck, CheckedState, StatePlace } from "../../ports/chain-check.ts";
import { noMetrics } from "../../ports/metrics.ts";
import { ChainDamage } from "./chain-damage.ts";
import { StateScrub } from "./state-scrub.ts";

const places: readonly StatePlace[] = [
  { account: "a", slot: "" },
  { account: "b", slot: "c" },
];

/** Checks the state in three steps; the second one finds `found`. Adds the place where each step begins to `asked`. */
function createChainCheck(
  found: Pick<CheckedState, "damaged" | "repaired">,
  asked: (StatePlace | undefined)[],
): ChainCheck {
  return {
    check: async () => undefined,
    repair: async () => false,
    checkIndexEntries: async () => ({ isMore: false, entries: 0, isDamaged: false }),
    checkState: async (from) => {
      asked.push(from);
      const step = from === undefined ? 0 : places.indexOf(from) + 1;
      return { next: places[step], nodes: 10, ...(step === 1 ? found : { damaged: [], repaired: 0 }) };
    },
  };
}

function createScrub() {
  const chainDamage = new ChainDamage();
  const outcomes: string[] = [];
  const metrics = { ...noMetrics, chainDamaged: (_: string, outcome: string) => void outcomes.push(outcome) };
  const run = async (found: Pick<CheckedState, "damaged" | "repaired">) => {
    const asked: (StatePlace | undefined)[] = [];
    const chainCheck = createChainCheck(found, asked);
    const scrub = new StateScrub({ groupId: defaultGroupId, chainCheck, chainDamage, metrics, logger: silentLogger });
    while (await scrub.step()) continue;
    return { ...scrub.progress, asked };
  };
  return { chainDamage, outcomes, run };
}

test("a scrub checks the whole state, reports known damage only once, and clears the warning if it finds none", async () => {
  const { chainDamage, outcomes, run } = createScrub();
  const bad = await run({ damaged: ["a node is missing."], repaired: 1 });
  expect(bad).toMatchObject({ checked: 30, damaged: 2, repaired: 1, advice: chainDamage.warning });
  expect(bad.asked).toEqual([undefined, ...places]);
  expect(chainDamage.warning).toMatch(/damaged in its state: a node is missing\. .*restore the data folder/);
  await run({ damaged: ["a node is missing."], repaired: 0 });
  expect(outcomes).toEqual(["mended", "unmended"]);
  expect(await run({ damaged: [], repaired: 0 })).toMatchObject({ checked: 30, damaged: 0, advice: undefined });
  expect(chainDamage.warning).toBeUndefined();
});

test("damage of a block or of the state gives a warning, and lost events give a failure", () => {
  const damage = new ChainDamage();
  const reason = "its receipts do not hash to its receiptsRoot.";
  damage.note(7, { reason, isLost: false });
  damage.noteState("a node is missing.");
  expect(damage.warning).toMatch(/damaged in block 7: .*; the chain's file is damaged in its state: a node/);
  expect(damage.failure).toBeUndefined();
  damage.note(9, { reason, isLost: true });
  expect(damage.failure).toMatch(/damaged in block 9: .*storeRetentionMs.*with the store of a backup/);
  expect(damage.warning).not.toContain("9");
});
