import { MalformedError, toHexText } from "@stele/eth";
import { type BatchEvent, decodeEvents, merkleRoot } from "@stele/wire";
import { commonEventRules, findBreach } from "../domain/event-rules.ts";
import type { Address } from "../domain/topic.ts";
import { RpcFailure } from "../ledger/evm/endpoint/rpc-failure.ts";
import { type ContractLog, parseLog } from "../ledger/evm/read/parse-log.ts";
import { RangeSize } from "../ledger/evm/read/range-size.ts";
import { type ChainClient, isRangeRefused } from "./chain-client.ts";
import { AnswerTooLong, Unverifiable } from "./unverifiable.ts";

/**
 * One batch of a topic on the chain. `events` is undefined if the batch is malformed; `fault` gives the reason. If both are set, the batch is
 * well-formed but breaks a rule by which every broker reads batches.
 */
export interface ChainBatch {
  readonly firstSequence: number;
  readonly count: number;
  readonly blockNumber: number;
  /** The account that called the registry. */
  readonly publisher: Address;
  readonly events: readonly BatchEvent[] | undefined;
  readonly fault: string | undefined;
}

export interface ReadRange {
  readonly address: Address;
  readonly registry: Address;
  readonly fromBlock: number;
  readonly head: number;
}

/**
 * Every batch of a topic, from its first event. The contract numbers events without a gap, so a gap shows that the node omitted a log.
 * @throws Unverifiable if the node omits a log or does not return the logs of a block.
 */
export async function* readBatches(chain: ChainClient, range: ReadRange): AsyncGenerator<ChainBatch> {
  let next = 1;
  for await (const log of readLogs(chain, range)) {
    if (log.kind !== "events-published") continue;
    const { firstSequence, count, blockNumber, sender: publisher } = log;
    if (firstSequence !== next) {
      const hint = next === 1 ? "; begin with an earlier --from-block" : "; ask another node";
      throw new Unverifiable(
        `the node returned events from sequence ${firstSequence} on, but the next is ${next}${hint}`,
      );
    }
    next += count;
    yield { firstSequence, count, blockNumber, publisher, ...readEvents(log) };
  }
}

async function* readLogs(chain: ChainClient, place: ReadRange): AsyncGenerator<ContractLog> {
  const { registry, address, fromBlock, head } = place;
  const size = new RangeSize();
  for (let from = fromBlock; from <= head; ) {
    const to = Math.min(head, from + size.blocks - 1);
    const logs = await chain.logs({ registry, address }, { from, to }).catch((error: unknown) => {
      if (isRangeRefused(error) && size.onRefusal()) return undefined;
      const blocks = from === to ? `block ${from}` : `blocks ${from} to ${to}`;
      throw error instanceof RpcFailure || error instanceof AnswerTooLong
        ? new Unverifiable(`the node does not return the logs of ${blocks}`, error)
        : error;
    });
    if (logs === undefined) continue;
    let bytes = 0;
    for (const raw of logs) {
      const log = parseLog(raw, registry);
      if (log?.address !== address) continue;
      if (log.kind === "events-published") bytes += log.events.length;
      yield log;
    }
    size.onAnswer(bytes);
    from = to + 1;
  }
}

type Published = Extract<ContractLog, { kind: "events-published" }>;

/** The events of a batch, or its fault. A batch that does not match its count and root contains no events. */
function readEvents({ count, eventsRoot, events }: Published): Pick<ChainBatch, "events" | "fault"> {
  try {
    const decoded = decodeEvents(events);
    if (decoded.length !== count) {
      return { events: undefined, fault: `${decoded.length} events where ${count} were claimed` };
    }
    if (toHexText(merkleRoot(events)) !== eventsRoot) {
      return { events: undefined, fault: "the events have another root than was claimed" };
    }
    return { events: decoded, fault: findBreach({ events: decoded, bytes: events.length }, commonEventRules) };
  } catch (error) {
    if (error instanceof MalformedError) return { events: undefined, fault: error.message };
    throw error;
  }
}
