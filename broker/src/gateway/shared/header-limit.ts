import type { IncomingMessage, Server } from "node:http";
import { headersMax } from "../limits.ts";

/** Makes the server read one header more than the limit, so that `hasTooManyHeaders` notices a request over it. Node drops further headers. */
export function limitHeaders(server: Server): void {
  server.maxHeadersCount = headersMax + 1;
}

/** Whether a request has more headers than the limit. Node may have dropped some, such as its credential or its Content-Length. */
export function hasTooManyHeaders({ rawHeaders }: IncomingMessage): boolean {
  return rawHeaders.length > 2 * headersMax; // Names and values.
}
