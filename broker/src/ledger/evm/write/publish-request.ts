import type { AppendOptions, OutgoingBatch } from "../../../ports/ledger.ts";
import type { BatchVerifier } from "../read/batch-verifier.ts";
import type { GasPolicy } from "./gas.ts";
import { type EncodedBatch, encodeOpenAndPublish, encodePublish } from "./publish-calldata.ts";
import type { TransactionRequest } from "./transaction-state.ts";

export interface PublishRequestOptions extends Pick<AppendOptions, "isAtomic"> {
  readonly verifier: Pick<BatchVerifier, "rootOf">;
  readonly gas: Pick<GasPolicy, "forPublish">;
}

export interface PublishRequest {
  readonly request: Pick<TransactionRequest, "data" | "gas" | "formulaGas" | "logsExpected" | "mayRevert">;
  readonly encoded: readonly EncodedBatch[];
}

const noRoot = new Uint8Array(32);

/** The transaction that publishes batches and, if necessary, opens their topics first. */
export function toPublish(batches: readonly OutgoingBatch[], options: PublishRequestOptions): PublishRequest {
  const { isAtomic = false, verifier, gas } = options;
  const encoded = batches.map(({ address, count, events }) => {
    const eventsRoot = count === 0 ? noRoot : verifier.rootOf(events, count);
    return { address, count, events, eventsRoot };
  });
  const names: string[] = [];
  let writers: number | undefined;
  for (const { topic, opening } of batches) {
    if (opening === undefined) continue;
    names.push(topic);
    ({ writers } = opening); // Takes the set of the last opening: earlier ones may name a set that was replaced meanwhile.
  }
  const isOpening = names.length > 0;
  const mayRevert = isAtomic && !isOpening;
  const data = isOpening
    ? encodeOpenAndPublish({ names, writers }, encoded)
    : encodePublish(encoded, mayRevert ? "publishAll" : "publish");
  // With openings the number of logs is unknown: a topic that is open already adds none.
  const logsExpected = isOpening ? undefined : encoded.length;
  return { request: { data, ...gas.forPublish(data.length, encoded.length, names), logsExpected, mayRevert }, encoded };
}
