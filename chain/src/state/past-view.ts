import type { NodeChanges } from "./node-changes.ts";
import { type StateSource, StateView } from "./state-view.ts";

/** The state with this root, before some blocks. `overwritten` has the nodes that these blocks overwrote, oldest first; `source` has the state after them. */
export function createPastView(source: StateSource, root: Uint8Array, overwritten: readonly NodeChanges[]): StateView {
  return new StateView(
    {
      findCode: (codeHash) => source.findCode(codeHash),
      findNode: (key, hash) => {
        const layer = overwritten.find((nodes) => nodes.has(key));
        return layer === undefined ? source.findNode(key, hash) : layer.get(key);
      },
    },
    root,
  );
}
