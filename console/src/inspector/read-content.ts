import { formatCounted } from "../lib/format.ts";
import { isJson } from "./json-tokens.ts";

export interface Content {
  readonly bytes: Uint8Array;
  /** Undefined if the bytes are not UTF-8. */
  readonly text: string | undefined;
  readonly isJson: boolean;
}

export function readContent(bytes: Uint8Array): Content {
  const text = decode(bytes);
  return { bytes, text, isJson: text !== undefined && isJson(text) };
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** Characters of a content that are shown as text or JSON. A browser takes one to three seconds to lay out a text of 4 MiB, and the tab hangs meanwhile. */
const shownCharactersMax = 2 ** 18;

/** The beginning of a long text, and how much is missing. */
export function toShown(text: string): string {
  if (text.length <= shownCharactersMax) return text;
  const head = text.slice(0, shownCharactersMax).replace(/[\uD800-\uDBFF]$/, ""); // Not half a character.
  return `${head}\n… and ${formatCounted(text.length - head.length, "character")} more`;
}

/** Characters of Base64 that a preview decodes: 240 bytes. */
const previewCharacters = 320;

/** The beginning of a content, in one line. Decodes nothing beyond it. */
export function previewOf(base64: string): string {
  const head = base64.slice(0, previewCharacters);
  const bytes = Uint8Array.from(atob(head), (character) => character.charCodeAt(0));
  const text = new TextDecoder().decode(bytes).replaceAll(/\s+/g, " ");
  return base64.length > previewCharacters ? `${text.replace(/\uFFFD+$/, "")}…` : text;
}
