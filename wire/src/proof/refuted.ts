/** Steps of the verification of a proof, in order. */
export const proofSteps = ["form", "header", "receipt", "log", "batch", "event", "topic", "publisher"] as const;

/**
 * A step at which a proof can fail. `form`: the input is not a proof. `header`: the header has another hash than the trusted block. `receipt`: the
 * receipt is not in the trusted block. `log`: the receipt has no batch at the proof's index. `batch`: the batch is malformed, or does not contain the event.
 * `event`: the eventId differs. `topic`: the registry is not the expected one, another contract wrote the log, or the log is of another topic. `publisher`: the
 * publishing account is not the one that the proof names, or is not among the expected ones.
 */
export type ProofStep = (typeof proofSteps)[number];

/** Thrown inside the verification, which returns it as a result. */
export class Refuted extends Error {
  readonly step: ProofStep;

  constructor(step: ProofStep, reason: string) {
    super(reason);
    this.name = "Refuted";
    this.step = step;
  }
}
