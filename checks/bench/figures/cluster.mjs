import { measureCallbacks } from "./cluster/callbacks.mjs";
import { measureSpread } from "./cluster/spread.mjs";
import { measureTakeOver } from "./cluster/take-over.mjs";

/** Several nodes on one PostgreSQL: how many callbacks they send together, how soon they take over, and how evenly they share the work. */
export const cluster = {
  name: "cluster",
  async measure(context) {
    const figures = [];
    for (const nodes of [1, 2, 3]) figures.push(...(await measureCallbacks(context, nodes)));
    figures.push(...(await measureTakeOver(context)));
    figures.push(...(await measureSpread(context)));
    return figures;
  },
};
