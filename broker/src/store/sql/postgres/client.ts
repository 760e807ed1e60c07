import type { Duplex } from "node:stream";
import { Client, type ClientConfig, Connection } from "pg";
import type { PostgresAddress } from "./address.ts";

export interface PostgresClientOptions extends Omit<ClientConfig, "connectionString" | "ssl"> {
  readonly address: PostgresAddress;
}

/** What the driver does not declare of itself. */
interface Internals {
  ssl: object | boolean;
  connection: Connection;
}

/** TLS of a server that need not prove who it is, as `prefer` means it. */
const anyServer = { rejectUnauthorized: false };

/** The driver's client, which also keeps `sslmode=prefer`, and speaks no TLS on a socket in the file system, as libpq. */
export class PostgresClient extends Client {
  constructor({ address, ...config }: PostgresClientOptions) {
    super({ ...config, connectionString: address.connectionString });
    const internals = this as unknown as Internals; // Both fields are there, and may be set until it connects.
    const { keepAlive, keepAliveInitialDelayMillis } = config;
    if (address.tls === "none") {
      internals.ssl = false;
      internals.connection = new Connection({ keepAlive, keepAliveInitialDelayMillis });
    } else if (address.tls === "prefer" && internals.ssl !== true) {
      // It is `true` where the environment's PGSSLMODE asks for TLS: that is not made weaker.
      const ssl = internals.ssl === false ? anyServer : internals.ssl;
      internals.ssl = ssl;
      internals.connection = new PreferringConnection({ ssl, keepAlive, keepAliveInitialDelayMillis });
    }
  }
}

/** What the driver's connection does, and does not declare. */
interface Negotiation {
  connect(port: number | string, host?: string): void;
  attachListeners(stream: Duplex): void;
}

const parent = Connection.prototype as unknown as Negotiation;
/** The server's whole answer to an SSLRequest when it speaks no TLS (protocol 3.0, section "SSL Session Encryption"). */
const refusal = "N";

/**
 * Asks for TLS, and goes on in the clear on the same connection where the server says that it has none. Only that answer is a reason: after
 * any other failure nothing is sent in the clear. Whoever can change what passes on the network can give that answer, too.
 */
class PreferringConnection extends Connection {
  connect(port: number | string, host?: string): void {
    parent.connect.call(this, port, host);
    const { stream } = this;
    // The driver waits for the answer by its one listener, and takes a refusal for an error.
    const upgrade = stream.listeners("data");
    stream.removeAllListeners("data");
    stream.once("data", (answer: Buffer) => {
      if (answer.toString("latin1") !== refusal) {
        for (const listener of upgrade) listener.call(stream, answer);
        return;
      }
      parent.attachListeners.call(this, stream);
      this.emit("sslconnect");
    });
  }
}
