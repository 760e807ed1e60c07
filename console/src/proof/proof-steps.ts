import type { ProofResult } from "@stele/client/proof";

export type StepState = "proven" | "refuted" | "unknown";

export interface Step {
  readonly name: string;
  /** What the step proves. */
  readonly claim: string;
  readonly state: StepState;
  /** Why it was refuted. */
  readonly reason: string | undefined;
}

type ProofStep = Extract<ProofResult, { readonly status: "refuted" }>["step"];

interface Link {
  readonly name: string;
  readonly claim: string;
  /** Steps of the verification that prove this link. */
  readonly checks: readonly ProofStep[];
}

/** From the event to the block. Each link contains the link before it. */
const links: readonly Link[] = [
  {
    name: "Event",
    claim: "the registry wrote the batch's log, and topic, number, identifier and publisher are what the log says",
    checks: ["event", "topic", "publisher", "form"],
  },
  {
    name: "Batch",
    claim: "the batch has the root that its log says, and contains the event, with this content and these extensions",
    checks: ["batch"],
  },
  // The verification checks who wrote the log later, at the step `topic`.
  { name: "Log of the batch", claim: "the receipt contains the log of a batch", checks: ["log"] },
  {
    name: "Receipt of the transaction",
    claim: "the block's tree of receipts contains the receipt",
    checks: ["receipt"],
  },
  {
    name: "Block",
    claim: "the block's header has the root of that tree, and the hash that you gave",
    checks: ["header"],
  },
];

/** The order in which the verification checks: a step is proven if it comes before the step that failed. */
const order: readonly ProofStep[] = ["form", "header", "receipt", "log", "batch", "event", "topic", "publisher"];

/** The path from the event to the block, with the result of a verification. Without a result, every step is unknown. */
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
