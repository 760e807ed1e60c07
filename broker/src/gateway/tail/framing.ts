import type { Framing } from "./tail-request.ts";

/** How one framing writes what a tail says. Texts of JSON hold no line break. */
export interface Frames {
  readonly contentType: string;
  /** Opens the stream: where it begins, and when to come back. */
  readonly begin: (id: string, retryMs: number) => string;
  readonly event: (id: string, json: string) => string;
  /** Something of the tail itself. Undefined id: the client's place stays. */
  readonly notice: (name: "resync" | "end", json: string, id?: string) => string;
  /** Says that the tail lives, and where it stands. */
  readonly heartbeat: (id: string | undefined) => string;
}

/** Server-Sent Events (WHATWG HTML, section 9.2). An id without data moves the client's place and calls nobody. */
const sse: Frames = {
  contentType: "text/event-stream",
  begin: (id, retryMs) => `retry: ${retryMs}\nid: ${id}\n\n`,
  event: (id, json) => `id: ${id}\ndata: ${json}\n\n`,
  notice: (name, json, id) => `${id === undefined ? "" : `id: ${id}\n`}event: ${name}\ndata: ${json}\n\n`,
  heartbeat: (id) => (id === undefined ? ":\n\n" : `id: ${id}\n\n`),
};

/** One JSON object on each line. What is no event has one member that says what it is; a heartbeat is an empty line. */
const ndjson: Frames = {
  contentType: "application/x-ndjson",
  begin: () => "",
  event: (_id, json) => `${json}\n`,
  notice: (name, json) => `{"${name}":${json}}\n`,
  heartbeat: () => "\n",
};

export const framings: Readonly<Record<Framing, Frames>> = { sse, ndjson };
