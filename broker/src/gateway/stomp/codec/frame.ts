/** Versions of STOMP, ascending. */
export const versions = ["1.0", "1.1", "1.2"] as const;
export type Version = (typeof versions)[number];

/** Commands of clients. */
export const clientCommands = [
  "CONNECT",
  "STOMP",
  "SEND",
  "SUBSCRIBE",
  "UNSUBSCRIBE",
  "ACK",
  "NACK",
  "BEGIN",
  "COMMIT",
  "ABORT",
  "DISCONNECT",
] as const;
export type ClientCommand = (typeof clientCommands)[number];

/** Commands of servers. */
export type ServerCommand = "CONNECTED" | "MESSAGE" | "RECEIPT" | "ERROR";

/** Headers in order of arrival. */
export type Headers = readonly (readonly [name: string, value: string])[];

/** A frame of a client. */
export interface ClientFrame {
  readonly command: ClientCommand;
  readonly headers: Headers;
  /** A view of the pushed bytes, if they came in one chunk. */
  readonly body: Buffer;
}

/** The value of a header: of repeated headers the first (1.2, "Repeated Header Entries"). */
export function findHeader(headers: Headers, name: string): string | undefined {
  return headers.find(([known]) => known === name)?.[1];
}
