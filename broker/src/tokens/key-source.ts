import { bodyChunks } from "../lib/body-chunks.ts";
import { openPlainFile } from "../lib/system/plain-file.ts";
import { withDeadline } from "../lib/with-deadline.ts";

/** Longest file of keys, and longest answer of an issuer (its keys, its settings or a token), in bytes. */
const documentBytesMax = 256 * 1024;
/** How long a fetch may take, in milliseconds. */
const fetchTimeoutMs = 5_000;

/** Whether a place of keys is a URL; else it is a path. */
export function isKeyUrl(place: string): boolean {
  return /^https?:\/\//i.test(place);
}

/** Reads the document at a path or URL. @throws Error with a message for the operator. */
export async function readKeyDocument(place: string, signal: AbortSignal): Promise<string> {
  return isKeyUrl(place) ? fetchDocument(place, signal) : readDocument(place);
}

async function readDocument(path: string): Promise<string> {
  await using file = await openPlainFile(path);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(documentBytesMax + 1), 0, documentBytesMax + 1, 0);
  if (bytesRead > documentBytesMax) throw tooLong();
  return buffer.toString("utf8", 0, bytesRead);
}

/** Fetches a document, and follows no redirect: the operator trusts only the URL that the settings name. */
async function fetchDocument(url: string, stopping: AbortSignal): Promise<string> {
  try {
    return await withDeadline({ timeoutMs: fetchTimeoutMs, signal: stopping }, async (signal) => {
      const response = await fetch(url, { signal, redirect: "error", headers: { accept: "application/json" } });
      const body = await readBody(response, signal);
      if (!response.ok) throw new Error(`the server answers with HTTP status ${response.status}`);
      return body.toString("utf8");
    });
  } catch (error) {
    // The health page shows only the message, and that of `fetch` is "fetch failed", whatever failed.
    throw error instanceof TypeError ? new Error(innermostReason(error), { cause: error }) : error;
  }
}

/** The innermost reason of an error: `fetch` and `openid-client` wrap it. */
export function innermostReason(error: unknown): string {
  const { cause, code, message }: { cause?: unknown; code?: unknown; message?: unknown } =
    typeof error === "object" && error !== null ? error : {};
  if (cause !== undefined) return innermostReason(cause);
  return typeof code === "string" ? code : String(message);
}

/** Reads a response's body, which may be too long or never end. @throws Error with a message for the operator, or the reason of the signal. */
export async function readBody(response: Response, signal: AbortSignal): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of bodyChunks(response, signal)) {
    bytes += chunk.byteLength;
    if (bytes > documentBytesMax) throw tooLong();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function tooLong(): Error {
  return new Error(`it has more than ${documentBytesMax} bytes`);
}
