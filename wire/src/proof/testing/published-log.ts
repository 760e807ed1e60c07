import { portableKeccak256, toHexText } from "@stele/eth";
import { type BatchEvent, encodeEvents } from "../../batch/encode-events.ts";
import { merkleRoot } from "../../batch/merkle.ts";

const word = 32;
const signature = "EventsPublished(address,uint64,address,bytes32,uint32,bytes)";

/** Claims of a publisher about a batch that differ from its events. */
export interface BatchClaims {
  readonly count?: number;
  readonly eventsRoot?: Uint8Array;
}

/** The `EventsPublished` log of a batch of the topic 0x7070…, by 0xabab…, as a node returns it. */
export function publishedLog(events: readonly BatchEvent[], claims: BatchClaims = {}) {
  const encoded = encodeEvents(events);
  const { count = events.length, eventsRoot = merkleRoot(encoded) } = claims;
  const padded = new Uint8Array(Math.ceil(encoded.length / word) * word);
  padded.set(encoded);
  const head = [count, 3 * word, encoded.length].map(wordOf).join("");
  return {
    topics: [
      toHexText(portableKeccak256(new TextEncoder().encode(signature))),
      addressTopic("70"),
      `0x${wordOf(1)}`,
      addressTopic("ab"),
    ],
    data: `${toHexText(eventsRoot)}${head}${toHexText(padded).slice(2)}`,
  };
}

function addressTopic(byte: string): string {
  return `0x${byte.repeat(20).padStart(2 * word, "0")}`;
}

function wordOf(value: number): string {
  return value.toString(16).padStart(2 * word, "0");
}
