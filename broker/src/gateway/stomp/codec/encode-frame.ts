import { escapeHeader, escapeText } from "./escapes.ts";
import type { Headers, ServerCommand, Version } from "./frame.ts";

/** A heart-beat: one end of line. */
export const HEART_BEAT: Buffer = Buffer.from("\n");

const NO_BODY: Buffer = Buffer.alloc(0);

export interface FrameFields {
  readonly command: ServerCommand;
  readonly headers: Headers;
  readonly body?: Buffer | undefined;
}

/**
 * The bytes of a frame. Leaves out headers without a name, and headers that the version cannot encode. Never leaves out the header that echoes the client's own
 * text.
 */
export function encodeFrame({ command, headers, body = NO_BODY }: FrameFields, version: Version): Buffer {
  // CONNECTED does not escape ("Value Encoding").
  const used = command === "CONNECTED" ? "1.0" : version;
  const head = `${command}\n${encodeHeaders(headers, { version: used, echoed: echoedBy[command] })}\n`;
  const headLength = Buffer.byteLength(head);
  const bytes = Buffer.allocUnsafe(headLength + body.length + 1);
  bytes.write(head, 0);
  body.copy(bytes, headLength);
  bytes[bytes.length - 1] = 0;
  return bytes;
}

/**
 * The header that echoes the client's own text. It is never left out: characters for which a version has no escape are sent back unchanged. Every other
 * header of a MESSAGE may be a publisher's text, which must not end the frame.
 */
const echoedBy: Readonly<Partial<Record<ServerCommand, string>>> = {
  MESSAGE: "subscription",
  RECEIPT: "receipt-id",
  ERROR: "receipt-id",
};

function encodeHeaders(
  headers: Headers,
  { version, echoed }: { readonly version: Version; readonly echoed: string | undefined },
): string {
  let text = "";
  for (const [name, value] of headers) {
    const escapedName = escapeHeader(name, { version, isName: true });
    const escapedValue =
      escapeHeader(value, { version, isName: false }) ?? (name === echoed ? escapeText(value, version) : undefined);
    if (escapedName !== undefined && escapedName !== "" && escapedValue !== undefined)
      text += `${escapedName}:${escapedValue}\n`;
  }
  return text;
}
