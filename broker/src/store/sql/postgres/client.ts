import type { Duplex } from "node:stream";
import { Client, type ClientConfig, Connection } from "pg";
import type { PostgresAddress } from "./address.ts";

export interface PostgresClientOptions extends Omit<ClientConfig, "connectionString" | "ssl"> {
  readonly address: PostgresAddress;
}

/** Fields of the driver that its types do not declare. */
interface Internals {
  ssl: object | boolean;
  connection: Connection;
}

/** TLS without verification of the server, as `prefer` requires. */
const anyServer = { rejectUnauthorized: false };

/** The driver's client with `sslmode=prefer`, and without TLS on a socket in the file system, like libpq. */
export class PostgresClient extends Client {
  constructor({ address, ...config }: PostgresClientOptions) {
    super({ ...config, connectionString: address.connectionString });
    const internals = this as unknown as Internals; // Both fields exist, and may be set until the client connects.
    const { keepAlive, keepAliveInitialDelayMillis } = config;
    if (address.tls === "none") {
      internals.ssl = false;
      internals.connection = new Connection({ keepAlive, keepAliveInitialDelayMillis });
    } else if (address.tls === "prefer" && internals.ssl !== true) {
      // `ssl` is `true` if the environment's PGSSLMODE requires TLS: do not weaken that.
      const ssl = internals.ssl === false ? anyServer : internals.ssl;
      internals.ssl = ssl;
      internals.connection = new PreferringConnection({ ssl, keepAlive, keepAliveInitialDelayMillis });
    }
  }
}

/** Members of the driver's connection that its types do not declare. */
interface Negotiation {
  connect(port: number | string, host?: string): void;
  attachListeners(stream: Duplex): void;
}

const parent = Connection.prototype as unknown as Negotiation;
/** The server's complete answer to an SSLRequest if it has no TLS (protocol 3.0, section "SSL Session Encryption"). */
const refusal = "N";

/**
 * Requests TLS, and continues in clear text on the same connection if the server answers that it has none. After any other failure it sends
 * nothing in clear text. An attacker who can change network traffic can forge that answer.
 */
class PreferringConnection extends Connection {
  connect(port: number | string, host?: string): void {
    parent.connect.call(this, port, host);
    const { stream } = this;
    // The driver's only listener treats a refusal as an error.
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
