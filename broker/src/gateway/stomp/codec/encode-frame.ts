import { escapeHeader, escapeText } from "./escapes.ts";
import type { Headers, ServerCommand, Version } from "./frame.ts";

/** A heart-beat: one end of line. */
export const HEART_BEAT: Buffer = Buffer.from("\n");

const NO_BODY: Buffer = Buffer.alloc(0);

export interface FrameOrder {
  readonly command: ServerCommand;
  readonly headers: Headers;
  readonly body?: Buffer | undefined;
}

/** The bytes of a frame. Leaves out headers without a name, and those that the version cannot encode, except `receipt-id` and `subscription`. */
export function encodeFrame({ command, headers, body = NO_BODY }: FrameOrder, version: Version): Buffer {
  // CONNECTED does not escape ("Value Encoding").
  const head = `${command}\n${encodeHeaders(headers, command === "CONNECTED" ? "1.0" : version)}\n`;
  const headLength = Buffer.byteLength(head);
  const bytes = Buffer.allocUnsafe(headLength + body.length + 1);
  bytes.write(head, 0);
  body.copy(bytes, headLength);
  bytes[bytes.length - 1] = 0;
  return bytes;
}

/** Headers that give the client its own text. They are never left out: characters without an escape in a version are sent back unchanged. */
const echoed: ReadonlySet<string> = new Set(["receipt-id", "subscription"]);

function encodeHeaders(headers: Headers, version: Version): string {
  let text = "";
  for (const [name, value] of headers) {
    const escapedName = escapeHeader(name, { version, isName: true });
    const escapedValue =
      escapeHeader(value, { version, isName: false }) ?? (echoed.has(name) ? escapeText(value, version) : undefined);
    if (escapedName !== undefined && escapedName !== "" && escapedValue !== undefined)
      text += `${escapedName}:${escapedValue}\n`;
  }
  return text;
}
