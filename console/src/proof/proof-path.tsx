import type { Proof, ProofResult } from "@stele/client/proof";
import type { ReactNode } from "react";
import { formatCounted } from "../lib/format.ts";
import { toSteps } from "./proof-steps.ts";

const marks = { proven: "proven", refuted: "refuted", unknown: "not checked" } as const;

export interface ProofPathProps {
  readonly proof: Proof;
  readonly result: ProofResult | undefined;
}

/** The path from the event on top to the block at the bottom. */
export function ProofPath({ proof, result }: ProofPathProps): ReactNode {
  const details = toDetails(proof);
  return (
    <ol className="proof-path">
      {toSteps(result).map(({ name, claim, state, reason }, index) => (
        <li key={name} className={`proof-${state}`}>
          <div className="title">
            <h3>{name}</h3>
            <span className={`badge badge-${state}`}>{marks[state]}</span>
          </div>
          <p className="mono">{details[index]}</p>
          <p className="quiet-text">{reason ?? claim}</p>
        </li>
      ))}
    </ol>
  );
}

/** A detail of the proof for each step of the path. */
function toDetails({ event, batch, receipt, header, registry }: Proof): readonly string[] {
  return [
    `${event.eventId}, registry ${registry}`,
    `event ${batch.index + 1} of the batch, ${formatCounted(batch.path.length, "sibling hash")}`.replace(
      /hashs$/,
      "hashes",
    ),
    `log ${receipt.logPlace + 1} of the transaction`,
    `transaction ${receipt.transactionIndex + 1} of the block, ${formatCounted(receipt.nodes.length, "node")} of the tree`,
    `header of ${formatCounted((header.length - 2) / 2, "byte")}`,
  ];
}
