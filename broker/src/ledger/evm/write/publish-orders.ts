import type { AppendOptions, OutgoingBatch } from "../../../ports/ledger.ts";
import type { BatchVerifier } from "../read/batch-verifier.ts";
import type { GasPolicy } from "./gas.ts";
import { type EncodedBatch, encodeOpenAndPublish, encodePublish } from "./publish-calldata.ts";
import type { TransactionRequest } from "./transaction-state.ts";

export interface PublishOrdersOptions {
  readonly verifier: Pick<BatchVerifier, "rootOf">;
  readonly gas: Pick<GasPolicy, "forPublish">;
  /** Whether the registry has `publishAll`; registries of an earlier version lack it. */
  readonly publishesAll: boolean;
}

/** A transaction that publishes, and its batches. */
export interface PublishOrder {
  readonly request: Pick<TransactionRequest, "data" | "gas" | "formulaGas" | "logsExpected" | "mayRevert">;
  readonly encoded: readonly EncodedBatch[];
}

const noRoot = new Uint8Array(32);

/** Builds the transactions that publish batches and, if necessary, open their topics first. */
export class PublishOrders {
  readonly #options: PublishOrdersOptions;

  constructor(options: PublishOrdersOptions) {
    this.#options = options;
  }

  make(batches: readonly OutgoingBatch[], { isWhole = false }: Pick<AppendOptions, "isWhole"> = {}): PublishOrder {
    const encoded = batches.map((batch) => this.#encode(batch));
    const names: string[] = [];
    let writers: number | undefined;
    for (const { topic, opening } of batches) {
      if (opening === undefined) continue;
      names.push(topic);
      ({ writers } = opening); // The last one counts: earlier openings may name a set that was replaced meanwhile.
    }
    const isOpening = names.length > 0;
    const mayRevert = isWhole && !isOpening && this.#options.publishesAll;
    const data = isOpening
      ? encodeOpenAndPublish({ names, writers }, encoded)
      : encodePublish(encoded, mayRevert ? "publishAll" : "publish");
    const gas = this.#options.gas.forPublish(data.length, encoded.length, names);
    // With openings the number of logs is unknown: a topic that is open already adds none.
    return { request: { data, ...gas, logsExpected: isOpening ? undefined : encoded.length, mayRevert }, encoded };
  }

  #encode({ address, count, events }: OutgoingBatch): EncodedBatch {
    const eventsRoot = count === 0 ? noRoot : this.#options.verifier.rootOf(events, count);
    return { address, count, events, eventsRoot };
  }
}
