import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { errorCatalogue } from "@stele/wire";
import { headerBytesMax } from "./limits.ts";

interface ClientError extends Error {
  readonly code?: string;
}

const answers: Readonly<Record<string, { readonly status: number; readonly details: string }>> = {
  HPE_HEADER_OVERFLOW: {
    status: 431,
    details: `the request line and headers are over ${headerBytesMax} bytes; send long content in the body of a POST`,
  },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, details: "the request did not arrive in time" },
};

const malformed = { status: 400, details: "the request is not valid HTTP" };

/** Answers what is no HTTP request, so that no route ever sees it, and closes the connection. */
export function answerClientError(error: ClientError, socket: Socket): void {
  if (socket.writable && !isAnswering(socket)) socket.write(toResponse(answers[error.code ?? ""] ?? malformed));
  socket.destroy();
}

// While an earlier request of the connection is under way, anything written now would be taken for its answer.
function isAnswering(socket: Socket): boolean {
  // Node keeps the response that owns the socket there, and tests it for this very reason in its own handler.
  return (socket as Socket & { _httpMessage?: unknown })._httpMessage instanceof Object;
}

function toResponse({ status, details }: { readonly status: number; readonly details: string }): string {
  const { code, message } = errorCatalogue.parameterInvalid;
  const body = JSON.stringify({ code, message: `${message}: ${details}` });
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    "content-type: application/json; charset=utf-8",
    `content-length: ${Buffer.byteLength(body)}`,
    "connection: close",
  ];
  return `${head.join("\r\n")}\r\n\r\n${body}`;
}
