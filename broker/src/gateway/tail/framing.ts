import type { Framing } from "./tail-request.ts";

/** How a framing writes the messages of a tail. JSON texts hold no line break. */
export interface Frames {
  readonly contentType: string;
  /** Opens the stream: its start position, and the delay before a reconnect. Nothing for JSON lines. */
  readonly begin: (id: string, retryMs: number) => string;
  readonly event: (id: string, json: string) => string;
  /** A message about the tail itself. Without an id, or in JSON lines, the client's position stays. */
  readonly notice: (name: "resync" | "end", json: string, id?: string) => string;
  /** Shows that the tail is alive and, given an id, its position. */
  readonly heartbeat: (id: string | undefined) => string;
}

/** Server-Sent Events (WHATWG HTML, section 9.2). An id without data moves the client's position and fires no event. */
const sse: Frames = {
  contentType: "text/event-stream",
  begin: (id, retryMs) => `retry: ${retryMs}\nid: ${id}\n\n`,
  event: (id, json) => `id: ${id}\ndata: ${json}\n\n`,
  notice: (name, json, id) => `${id === undefined ? "" : `id: ${id}\n`}event: ${name}\ndata: ${json}\n\n`,
  heartbeat: (id) => (id === undefined ? ":\n\n" : `id: ${id}\n\n`),
};

/** One JSON object on each line. A notice is an object with one member, `resync` or `end`; a heartbeat is an empty line. */
const ndjson: Frames = {
  contentType: "application/x-ndjson",
  begin: () => "",
  event: (_id, json) => `${json}\n`,
  notice: (name, json) => `{"${name}":${json}}\n`,
  heartbeat: () => "\n",
};

export const framings: Readonly<Record<Framing, Frames>> = { sse, ndjson };
