import type { ProofResult } from "@stele/client/proof";

export type StepState = "proven" | "refuted" | "unknown";

export interface Step {
  readonly name: string;
  /** What the step ties to the one after it. */
  readonly claim: string;
  readonly state: StepState;
  /** Why it was refuted. */
  readonly reason: string | undefined;
}

type ProofStep = Extract<ProofResult, { readonly status: "refuted" }>["step"];

interface Link {
  readonly name: string;
  readonly claim: string;
  /** Steps of the verification that this link of the path stands for. */
  readonly checks: readonly ProofStep[];
}

/** From the event to the block: each link is in the one after it. */
const links: readonly Link[] = [
  {
    name: "Event",
    claim: "its topic, number and identifier are what the batch says",
    checks: ["event", "topic", "publisher", "form"],
  },
  { name: "Batch", claim: "the event stands in it, with this content and these extensions", checks: ["batch"] },
  {
    name: "Log of the registry",
    claim: "the registry wrote down the batch's root, and who published it",
    checks: ["log"],
  },
  {
    name: "Receipt of the transaction",
    claim: "the log is in it, and it is in the block's tree of receipts",
    checks: ["receipt"],
  },
  { name: "Block", claim: "its header has the root of that tree, and the hash that you gave", checks: ["header"] },
];

/** The order in which the verification goes: a step is proven if it comes before the one that failed. */
const order: readonly ProofStep[] = ["form", "header", "receipt", "log", "batch", "event", "topic", "publisher"];

/** The path from the event to the block, with what a verification found; nothing is known before there was one. */
export function toSteps(result: ProofResult | undefined): readonly Step[] {
  return links.map(({ name, claim, checks }) => {
    const state = stateOf(checks, result);
    return {
      name,
      claim,
      state,
      reason: state === "refuted" && result?.status === "refuted" ? result.reason : undefined,
    };
  });
}

function stateOf(checks: readonly ProofStep[], result: ProofResult | undefined): StepState {
  if (result === undefined) return "unknown";
  if (result.status === "verified") return "proven";
  if (checks.includes(result.step)) return "refuted";
  const failedAt = order.indexOf(result.step);
  return checks.every((check) => order.indexOf(check) < failedAt) ? "proven" : "unknown";
}
