import { findBytes } from "@stele/eth";
import * as z from "zod";

const hashBytes = 32;
const addressBytes = 20;
/** Maximum number of siblings from a leaf to the root of a batch of 65,536 events. */
const batchPathMax = 16;
/** Maximum number of trie nodes from the root to a receipt: its key has at most 10 nibbles. */
const receiptNodesMax = 10;

/** Refuses lone surrogates: they have no UTF-8 form, so two texts would have the same bytes. */
const wellFormed = z.string().refine((text) => !/\p{Surrogate}/u.test(text), "half of a surrogate pair");

const hex = (bytes?: number) =>
  z
    .string()
    .refine((text) => isHex(text, bytes), "not 0x and lower-case hex digits of the right number")
    .meta({ pattern: bytes === undefined ? "^0x([0-9a-f]{2})*$" : `^0x[0-9a-f]{${2 * bytes}}$` });

/** Largest index in a batch, a receipt or a block. */
const placeMax = 0xffff_ffff;
const place = z.int().min(0).max(placeMax);

/**
 * Proof that an event was published. The block hash covers every field: after any change, the proof fails or the block hash differs. Bytes are `0x`
 * and lower-case hex digits.
 */
export const proofSchema = z
  .strictObject({
    version: z.literal(1).describe("Version of the proof format."),
    registry: hex(addressBytes).describe("Address of the registry that the topic belongs to."),
    publisher: hex(addressBytes).describe("Account that published the event."),
    event: z
      .strictObject({
        topic: wellFormed.describe("Topic of the event."),
        content: hex().describe("The content."),
        extensions: z
          .array(z.tuple([wellFormed, wellFormed]))
          .describe("Extension data: key and value pairs in the producer's order."),
        eventId: z.string().describe("Identifier of the event."),
      })
      .describe("The event."),
    batch: z
      .strictObject({
        index: place.describe("Index of the event in its batch, from 0."),
        path: z
          .array(hex(hashBytes))
          .max(batchPathMax)
          .describe("Sibling hashes from the event's leaf up to the batch's eventsRoot."),
      })
      .describe("The event's place in its batch."),
    receipt: z
      .strictObject({
        transactionIndex: place.describe("Index of the transaction in its block."),
        logPlace: place.describe("Index of the batch's log in the receipt, from 0."),
        nodes: z
          .array(hex())
          .min(1)
          .max(receiptNodesMax)
          .describe(
            "Nodes of the Merkle-Patricia trie from the receiptsRoot down to the leaf that contains the receipt.",
          ),
      })
      .describe("The receipt of the transaction."),
    header: hex().describe("RLP of the block header."),
  })
  .meta({ title: "Proof" });
export type Proof = z.output<typeof proofSchema>;

/** Result of reading the text of a proof. */
export type ParsedProof =
  | { readonly status: "proof"; readonly proof: Proof }
  | { readonly status: "malformed"; readonly reason: string };

/**
 * Reads the JSON text of a proof. White space between tokens is allowed. Everything else must be as JSON.stringify writes it, so that two texts of the
 * same proof differ only in white space.
 */
export function parseProof(text: string): ParsedProof {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { status: "malformed", reason: "not JSON" };
  }
  const checked = checkProof(value);
  if (checked.status === "malformed") return checked;
  if (JSON.stringify(checked.proof) !== withoutSpace(text)) {
    return { status: "malformed", reason: "not written as JSON.stringify writes it" };
  }
  return checked;
}

/** Checks the form of a proof that is already parsed. */
export function checkProof(value: unknown): ParsedProof {
  const result = proofSchema.safeParse(value);
  if (result.success) return { status: "proof", proof: result.data };
  const [issue] = result.error.issues;
  const path = issue?.path.join(".") ?? "";
  return { status: "malformed", reason: path === "" ? "not a proof of this form" : `${path}: ${issue?.message}` };
}

function isHex(text: string, bytes: number | undefined): boolean {
  const found = findBytes(text);
  return found !== undefined && (bytes === undefined || found.length === bytes);
}

/** JSON text without the white space between its tokens. Written by hand: a regular expression over a string of megabytes overflows the stack. */
function withoutSpace(text: string): string {
  const parts: string[] = [];
  for (let at = 0; at < text.length; ) {
    const quote = text.indexOf('"', at);
    const start = quote === -1 ? text.length : quote;
    parts.push(text.slice(at, start).replaceAll(/[ \t\n\r]+/g, ""));
    at = afterString(text, start);
    parts.push(text.slice(start, at));
  }
  return parts.join("");
}

/** Index after the JSON string that begins at `start`. */
function afterString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    at = text.indexOf('"', at);
    if (at === -1) return text.length;
    let escapes = 0;
    while (text[at - 1 - escapes] === "\\") escapes += 1;
    if (escapes % 2 === 0) return at + 1;
  }
  return text.length;
}
