/** Steps of the verification of a proof, in their order. */
export const proofSteps = ["form", "header", "receipt", "log", "batch", "event", "topic", "publisher"] as const;

/**
 * A step at which a proof can fail. `form`: it is no proof. `header`: the header is not that of the trusted block. `receipt`: the receipt is
 * not in that block. `log`: there is no batch of events at its place. `batch`: the batch is malformed, or the event is not in it. `event`: the
 * eventId is another one. `topic`: the log was not written by the topic of that name and registry. `publisher`: the account that published
 * is not among the expected ones.
 */
export type ProofStep = (typeof proofSteps)[number];

/** Thrown inside the verification, and turned into its result at its edge. */
export class Refuted extends Error {
  readonly step: ProofStep;

  constructor(step: ProofStep, reason: string) {
    super(reason);
    this.name = "Refuted";
    this.step = step;
  }
}
