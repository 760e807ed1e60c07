import type { Event, EventBatch } from "../../domain/event.ts";
import { isMarkedRetained, retainedMark, sessionMarks } from "../../domain/session-filter.ts";
import type { IndexedBlock, RetainedChange } from "../../ports/store.ts";
import { eventsOf } from "../batch-events.ts";

/** RLP header of a text of four bytes, as in an encoded batch. */
const fourBytesHeader = 0x84;

/** Finds the events of blocks that MQTT retains: those with the retain extension. */
export class RetainedChanges {
  readonly #prefix: string;
  /** Bytes that occur in every batch with a retained event: the extension's key, and its encoded value. */
  readonly #trace: Buffer;

  constructor(extensionPrefix: string) {
    this.#prefix = extensionPrefix;
    const key = Buffer.from(extensionPrefix + sessionMarks.retain);
    this.#trace = Buffer.concat([key, Buffer.of(fourBytesHeader), Buffer.from(retainedMark)]);
  }

  /** Returns the block with its changes of retained events added. */
  addTo(block: IndexedBlock): IndexedBlock {
    const retained = this.#in(block.batches);
    return retained.length === 0 ? block : { ...block, retained };
  }

  /** One change for each topic with a marked event: the topic's last marked event counts. */
  #in(batches: readonly EventBatch[]): readonly RetainedChange[] {
    const found = new Map<EventBatch["topic"], RetainedChange>();
    for (const batch of batches) {
      const event = this.#lastMarked(batch);
      if (event !== undefined) found.set(batch.topic, toChange(event));
    }
    return [...found.values()];
  }

  /** The last marked event of a batch. Decodes the batch only if it contains `#trace`; the search takes about 0.3 ms for 1 MiB. */
  #lastMarked(batch: EventBatch): Event | undefined {
    const { buffer, byteOffset, byteLength } = batch.events;
    if (!Buffer.from(buffer, byteOffset, byteLength).includes(this.#trace)) return undefined;
    return eventsOf(batch).findLast((event) => isMarkedRetained(event, this.#prefix));
  }
}

function toChange({ topic, sequence, position, content }: Event): RetainedChange {
  return { name: topic, retained: content.byteLength === 0 ? undefined : { sequence, position } };
}
