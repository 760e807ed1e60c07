const textByCode: Readonly<Record<string, string>> = {
  ECONNREFUSED: "the connection was refused",
  ECONNRESET: "the connection was reset",
  EPIPE: "the connection was closed while the request was sent",
  EHOSTUNREACH: "there is no route to the host",
  ENETUNREACH: "there is no route to the network",
  ENOENT: "there is no such socket",
  EACCES: "the socket may not be opened",
  ETIMEDOUT: "the connection timed out",
  UND_ERR_CONNECT_TIMEOUT: "the connection timed out",
  ENOTFOUND: "the host name was not found",
  EAI_AGAIN: "the host name could not be looked up",
  UND_ERR_SOCKET: "the connection was closed before the answer was whole",
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: "the answer is not as long as its header says",
  UND_ERR_HEADERS_OVERFLOW: "the answer's headers are too long",
};

/** Describes an answer that is not HTTP. */
export const notHttp = "the answer is not HTTP";

const codesBeforeConnection: ReadonlySet<string | undefined> = new Set([
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOENT",
  "EACCES",
  "ENOTFOUND",
  "EAI_AGAIN",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** Describes a failed connection or exchange. Shows only the code of an unknown error: a code contains no data from the other side. */
export function describeNetworkFailure(error: Error): string {
  if (isNotHttp(error)) return notHttp;
  const code = codeOf(error) ?? "no code";
  const text = textByCode[code];
  if (text !== undefined) return text;
  return isTls(code) ? `TLS failed (${code})` : `the exchange failed (${code})`;
}

/** Whether the other side answered in another protocol than HTTP, such as STOMP or SSH. undici may set no code on its error. */
export function isNotHttp(error: unknown): boolean {
  return error instanceof Error && error.name === "HTTPParserError";
}

/** Whether the connection failed before it was established, so that the other side received nothing. */
export function isBeforeConnection(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  // For a name with several addresses, Node.js reports together that it could connect to none.
  if (error instanceof AggregateError) return true;
  // The same codes come from `read` or `write` if an open connection loses its route.
  if ("syscall" in error) return error.syscall === "connect" || error.syscall === "getaddrinfo";
  const code = codeOf(error);
  return codesBeforeConnection.has(code) || isTls(code ?? "");
}

/** The code of a failure of TLS; undefined for other failures. */
export function tlsCodeOf(error: unknown): string | undefined {
  const code = error instanceof Error ? codeOf(error) : undefined;
  return code !== undefined && isTls(code) ? code : undefined;
}

/** Whether the other side answered the first bytes of TLS in plain text. Some versions of Node.js, such as 22.20, give the second code. */
export function isPlainText(tlsCode: string | undefined): boolean {
  return tlsCode === "ERR_SSL_WRONG_VERSION_NUMBER" || tlsCode === "ERR_SSL_PACKET_LENGTH_TOO_LONG";
}

/** Whether `fetch` did not try, because the Fetch standard (section 2.9) blocks the port, such as 6000 or 10080. undici sets no code on its error. */
export function isBlockedPort(cause: unknown): boolean {
  return cause instanceof Error && cause.message === "bad port";
}

function codeOf(error: Error): string | undefined {
  return "code" in error && typeof error.code === "string" ? error.code : undefined;
}

function isTls(code: string): boolean {
  return /SSL|TLS|CERT|^UNABLE_TO_|^INVALID_(?:CA|PURPOSE)$|^PATH_LENGTH_EXCEEDED$/.test(code);
}
