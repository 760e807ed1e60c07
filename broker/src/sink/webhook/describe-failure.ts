import { errors } from "undici";
import { AttemptError } from "./attempt-error.ts";

const textByCode: Readonly<Record<string, string>> = {
  ECONNREFUSED: "the connection was refused",
  ECONNRESET: "the connection was reset",
  EPIPE: "the connection was closed while the request was sent",
  EHOSTUNREACH: "there is no route to the host",
  ENETUNREACH: "there is no route to the network",
  ETIMEDOUT: "the connection timed out",
  UND_ERR_CONNECT_TIMEOUT: "the connection timed out",
  ENOTFOUND: "the host name was not found",
  EAI_AGAIN: "the host name could not be looked up",
  UND_ERR_SOCKET: "the connection was closed before the answer was whole",
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: "the answer is not as long as its header says",
  UND_ERR_HEADERS_OVERFLOW: "the answer's headers are too long",
};

/** A failed connection, request or answer in words. Of a foreign error only its code is told, which holds nothing of the receiver's. */
export function describeFailure(error: Error): string {
  if (error instanceof AttemptError) return error.message;
  if (error instanceof errors.HTTPParserError) return "the answer is not HTTP";
  const code = codeOf(error) ?? "no code";
  const text = textByCode[code];
  if (text !== undefined) return text;
  if (/SSL|TLS|CERT/.test(code)) return `TLS failed (${code})`;
  return `the exchange failed (${code})`;
}

function codeOf(error: Error): string | undefined {
  return "code" in error && typeof error.code === "string" ? error.code : undefined;
}
