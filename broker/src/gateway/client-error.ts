import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { type ErrorDefinition, errorCatalogue } from "@stele/wire";
import { headerBytesMax, headersMax } from "./limits.ts";
import { isCloudEventRequest } from "./rest/cloud-events.ts";
import { isRestTarget } from "./shared/base-path.ts";
import { isAnswering } from "./shared/is-answering.ts";

interface ClientError extends Error {
  readonly code?: string;
  /** The chunk that Node failed to parse; it usually starts with the request line. */
  readonly rawPacket?: unknown;
}

interface Answer {
  readonly status: number;
  readonly error: ErrorDefinition;
  readonly details: string;
}

const { busy, parameterInvalid } = errorCatalogue;

const answers: Readonly<Record<string, Answer>> = {
  // Later versions of Node, such as 22.23 and 24.22, refuse too many headers by this code too. With earlier ones, the server counts them itself.
  HPE_HEADER_OVERFLOW: {
    status: 431,
    error: parameterInvalid,
    details: `the request has more than ${headersMax} headers, or its request line and headers are over ${headerBytesMax} bytes; send long content in the body of a POST`,
  },
  HPE_INVALID_URL: {
    status: 400,
    error: parameterInvalid,
    details: "the request line has a character that is not escaped",
  },
  // As for a body that comes too slowly. Nothing has run, so the client may repeat the request.
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, error: busy, details: "the request did not arrive in time" },
};

const cloudEventHeader = /^(?:ce-specversion:|content-type:[ \t]*application\/cloudevents)/im;

const malformed: Answer = { status: 400, error: parameterInvalid, details: "the request is not valid HTTP" };

/**
 * Closes the connection of a request that Node cannot parse or that came too slowly. First answers the request, unless the broker is answering an earlier
 * request of the connection.
 */
export function createClientErrorHandler(basePath: string) {
  return (error: ClientError, socket: Socket): void => {
    const answer = answers[error.code ?? ""] ?? malformed;
    const cut = findCutRequest(socket);
    const isOk = cut === undefined ? isPacketOk(error.rawPacket, basePath) : isRequestOk(cut, basePath);
    const mayAnswer = cut !== undefined || !isAnswering(socket);
    if (socket.writable && mayAnswer) socket.write(toResponse(isOk ? { ...answer, status: 200 } : answer));
    socket.destroy();
  };
}

/**
 * The request whose body the error cut short, unless its answer has begun. Node reads nothing after an incomplete request, so the error is about this request.
 * It has changed nothing: its handler waits for the whole body, or refuses an incomplete one. A GET or HEAD is left out, because it runs without its body.
 */
function findCutRequest(socket: Socket): IncomingMessage | undefined {
  const response = (socket as Socket & { _httpMessage?: ServerResponse | null })._httpMessage;
  if (!response || response.headersSent || response.req.complete) return undefined;
  return response.req.method === "GET" || response.req.method === "HEAD" ? undefined : response.req;
}

/** Whether the answer has status 200. Senders of CloudEvents read only the status. */
function isRequestOk(request: IncomingMessage, basePath: string): boolean {
  return isRestTarget(request.url ?? "", basePath) && !isCloudEventRequest(request);
}

/** The same for a request that Node did not parse, as far as its first chunk shows it. Node skips empty lines before a request. */
function isPacketOk(packet: unknown, basePath: string): boolean {
  const head = packet instanceof Buffer ? packet.toString("latin1", 0, headerBytesMax) : "";
  const [, method, target = ""] = /^[\r\n]*([^ \r\n]*) ([^ \r\n]*)/.exec(head) ?? [];
  return isRestTarget(target, basePath) && !(method === "POST" && cloudEventHeader.test(head));
}

function toResponse({ status, error, details }: Answer): string {
  const body = JSON.stringify({ code: error.code, message: `${error.message}: ${details}` });
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    "content-type: application/json; charset=utf-8",
    `stele-error-retry: ${error.retry}`,
    `content-length: ${Buffer.byteLength(body)}`,
    "connection: close",
  ];
  return `${head.join("\r\n")}\r\n\r\n${body}`;
}
