import { connect as connectTls } from "node:tls";
import { expect, it } from "vitest";
import { type LogFields, type Logger, silentLogger } from "../../lib/logger.ts";
import { RawClient } from "./testing/raw-client.ts";
import { StompWorld } from "./testing/stomp-world.ts";

it("logs that a client began a TLS handshake on the port without TLS, and names the port's setting", async () => {
  const lines: (readonly [message: string, fields: LogFields | undefined])[] = [];
  const logger: Logger = { ...silentLogger, info: (message, fields) => void lines.push([message, fields]) };
  const world = await StompWorld.start({ logger });
  try {
    const client = connectTls({ host: "127.0.0.1", port: world.port, rejectUnauthorized: false });
    await new Promise((resolve) => client.once("error", resolve));
    const fields = { reason: "the client began a TLS handshake; see stompTlsPort", address: "127.0.0.1" };
    expect(lines).toEqual([["STOMP connection ended", fields]]);
  } finally {
    await world.stop();
  }
});

it("logs why a connection ends, and the address of its client", async () => {
  const lines: (readonly [message: string, fields: LogFields | undefined])[] = [];
  const logger: Logger = { ...silentLogger, info: (message, fields) => void lines.push([message, fields]) };
  const world = await StompWorld.start({ logger });
  try {
    const client = await RawClient.connect(world.port);
    client.send("CONNECT", {});
    await client.next("ERROR");
    const fields = { reason: "the connection is open already", address: "127.0.0.1" };
    expect(lines).toEqual([["STOMP connection ended", fields]]);
  } finally {
    await world.stop();
  }
});
