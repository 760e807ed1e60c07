import { TLSSocket } from "node:tls";
import ipaddr from "ipaddr.js";
import type { Duplex } from "node:stream";
import type { Logger } from "../../../lib/logger.ts";

/** Warns about the first connection without TLS to a server on another machine, and about the next one after a connection with TLS. */
export class ClearTextReport {
  readonly #logger: Logger;
  readonly #description: string;
  #isReported = false;

  constructor(logger: Logger, description: string) {
    this.#logger = logger;
    this.#description = description;
  }

  /** Call it with the stream of each new session. */
  saw(stream: Duplex): void {
    const isExposed = isClearText(stream);
    if (isExposed && !this.#isReported) {
      this.#logger.warn("database connected without TLS: anyone on the network path can read and change all data", {
        database: this.#description,
        remedy: "set TLS up at the server, and sslmode=verify-full in STELE_DATABASE_URL",
      });
    }
    this.#isReported = isExposed;
  }
}

/** Whether a connection sends clear text to another machine. */
export function isClearText(stream: Duplex): boolean {
  if (stream instanceof TLSSocket) return false;
  const address = "remoteAddress" in stream ? stream.remoteAddress : undefined;
  return typeof address === "string" && ipaddr.process(address).range() !== "loopback"; // A local socket has no address.
}
