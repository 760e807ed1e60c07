import type { Ledger } from "../../ports/ledger.ts";
import type { BlockRepairOptions } from "./block-repair.ts";
import { ChainScrub } from "./chain-scrub.ts";
import { IndexScrub, type IndexScrubOptions } from "./index-scrub.ts";
import type { Scrubbable } from "./scrubber.ts";
import { PlaceScrub } from "./place-scrub.ts";
import { StateScrub } from "./state-scrub.ts";

type ScrubOptions = IndexScrubOptions & Omit<BlockRepairOptions, "chainCheck"> & { readonly ledger: Ledger };

/** The parts of one scrub of a group. The chain's file, if this node has it, comes first: the index is repaired from it. */
export function createScrubs(options: ScrubOptions): readonly Scrubbable[] {
  const { chainCheck } = options.ledger;
  const index = new IndexScrub(options);
  return chainCheck === undefined
    ? [index]
    : [
        new ChainScrub({ ...options, chainCheck }),
        new PlaceScrub({ ...options, chainCheck }),
        new StateScrub({ ...options, chainCheck }),
        index,
      ];
}
