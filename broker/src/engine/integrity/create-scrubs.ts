import type { Ledger } from "../../ports/ledger.ts";
import type { BlockRepairOptions } from "./block-repair.ts";
import { ChainScrub } from "./chain-scrub.ts";
import { IndexScrub, type IndexScrubOptions } from "./index-scrub.ts";
import type { Scrubbable } from "./scrubber.ts";
import { PlaceScrub } from "./place-scrub.ts";
import { StateScrub } from "./state-scrub.ts";

type ScrubOptions = IndexScrubOptions & Omit<BlockRepairOptions, "chainCheck"> & { readonly ledger: Ledger };

/** One round through a group: first the chain's file, where it is ours, since the index is mended from it. */
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
