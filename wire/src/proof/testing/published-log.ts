import { type BatchEvent, encodeEvents } from "../../batch/encode-events.ts";
import { portableKeccak256 } from "../../batch/keccak.ts";
import { merkleRoot } from "../../batch/merkle.ts";
import { toHexText } from "../hex.ts";

const word = 32;
const signature = "EventsPublished(uint64,address,bytes32,uint32,bytes)";

/** What a publisher may claim of a batch, where it is not what the events say. */
export interface BatchClaims {
  readonly count?: number;
  readonly eventsRoot?: Uint8Array;
}

/** The log `EventsPublished` of a batch, as a node gives it. */
export function publishedLog(events: readonly BatchEvent[], claims: BatchClaims = {}) {
  const encoded = encodeEvents(events);
  const { count = events.length, eventsRoot = merkleRoot(encoded) } = claims;
  const padded = new Uint8Array(Math.ceil(encoded.length / word) * word);
  padded.set(encoded);
  const head = [count, 2 * word, encoded.length].map(wordOf).join("");
  return {
    topics: [
      toHexText(portableKeccak256(new TextEncoder().encode(signature))),
      `0x${wordOf(1)}`,
      `0x${"ab".repeat(20).padStart(2 * word, "0")}`,
      toHexText(eventsRoot),
    ],
    data: `0x${head}${toHexText(padded).slice(2)}`,
  };
}

function wordOf(value: number): string {
  return value.toString(16).padStart(2 * word, "0");
}
