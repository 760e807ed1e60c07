import type { Ledger } from "../../ports/ledger.ts";
import type { BlockRepairParts } from "./block-repair.ts";
import { ChainScrub } from "./chain-scrub.ts";
import { IndexScrub, type IndexScrubParts } from "./index-scrub.ts";
import type { Scrubbable } from "./scrubber.ts";
import { StateScrub } from "./state-scrub.ts";

type ScrubParts = IndexScrubParts & Omit<BlockRepairParts, "chainCheck"> & { readonly ledger: Ledger };

/** One round through a group: first the chain's file, where it is ours, since the index is mended from it. */
export function createScrubs(parts: ScrubParts): readonly Scrubbable[] {
  const { chainCheck } = parts.ledger;
  const index = new IndexScrub(parts);
  return chainCheck === undefined
    ? [index]
    : [new ChainScrub({ ...parts, chainCheck }), new StateScrub({ ...parts, chainCheck }), index];
}
