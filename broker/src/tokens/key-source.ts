import { open } from "node:fs/promises";

/** Longest document of keys, in bytes. */
const documentBytesMax = 256 * 1024;
/** How long a fetch may take, in milliseconds. */
const fetchTimeoutMs = 5_000;

/** Whether a place of keys is a URL; else it is a path. */
export function isKeyUrl(place: string): boolean {
  return /^https?:\/\//i.test(place);
}

/** Reads the document at a path or URL. @throws Error in words for the operator. */
export async function readKeyDocument(place: string, signal: AbortSignal): Promise<string> {
  return isKeyUrl(place) ? fetchDocument(place, signal) : readDocument(place);
}

async function readDocument(path: string): Promise<string> {
  await using file = await open(path, "r");
  const { buffer, bytesRead } = await file.read(Buffer.alloc(documentBytesMax + 1), 0, documentBytesMax + 1, 0);
  if (bytesRead > documentBytesMax) throw tooLong();
  return buffer.toString("utf8", 0, bytesRead);
}

/** A redirect is not followed: the operator named the place that is to be trusted. */
async function fetchDocument(url: string, signal: AbortSignal): Promise<string> {
  const ends = AbortSignal.any([signal, AbortSignal.timeout(fetchTimeoutMs)]);
  const response = await fetch(url, { signal: ends, redirect: "error", headers: { accept: "application/json" } });
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > documentBytesMax) throw tooLong(); // leaving the loop ends the transfer
    chunks.push(chunk);
  }
  if (!response.ok) throw new Error(`it is answered with HTTP status ${response.status}`);
  return Buffer.concat(chunks).toString("utf8");
}

function tooLong(): Error {
  return new Error(`it has more than ${documentBytesMax} bytes`);
}
