import { once } from "node:events";
import { createServer, type Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parsePostgresAddress } from "./address.ts";
import { PostgresClient } from "./client.ts";
import { createPostgresStore } from "./postgres-store.ts";
import { findFreePort } from "./testing/free-port.ts";
import { hasPostgres, type PostgresServer, startPostgres, titleOf } from "./testing/postgres-server.ts";

const encrypted = "select ssl from pg_stat_ssl where pid = pg_backend_pid()";

describe.runIf(hasPostgres)(titleOf("a PostgreSQL server without TLS"), () => {
  let server: PostgresServer;
  let port: number;
  beforeAll(async () => {
    port = await findFreePort();
    server = await startPostgres({ port, settings: ["listen_addresses=127.0.0.1"] });
  });
  afterAll(async () => server.remove());

  const remote = (parameters: string) => `postgres://stele@127.0.0.1:${port}/postgres?${parameters}`;

  it.each(["", "sslmode=prefer", "sslmode=disable"])("connects in clear text with %j", async (parameters) => {
    const client = new PostgresClient({ address: parsePostgresAddress(remote(parameters)) });
    await client.connect();
    expect((await client.query(encrypted)).rows).toEqual([{ ssl: false }]);
    await client.end();
  });

  it.each(["require", "verify-full"])("refuses to connect with sslmode=%s", async (mode) => {
    const store = createPostgresStore({ url: remote(`sslmode=${mode}`), connectionsMax: 1 });
    await expect(store.start()).rejects.toMatchObject({
      fault: "cannot-open",
      message: expect.stringContaining("does not speak TLS"),
    });
    await store.stop();
  });

  it.each(["disable", "prefer", "require", "verify-full"])(
    "connects over the server's socket with any sslmode (%s)",
    async (mode) => {
      const socket = `postgres://stele@${encodeURIComponent(server.folder)}:${port}/postgres?sslmode=${mode}`;
      const client = new PostgresClient({ address: parsePostgresAddress(socket) });
      await client.connect();
      expect((await client.query(encrypted)).rows).toEqual([{ ssl: false }]);
      await client.end();
    },
  );
});

describe("the request for TLS", () => {
  it("a server that refuses TLS gets clear text under sslmode prefer, and nothing under require", async () => {
    expect(await sentAfter("N", "prefer")).toContain("user\0stele");
    expect(await sentAfter("N", "require")).toBe("");
  });

  it.each(["NN", "E", "X"])(
    "a server that answers %j gets nothing more under sslmode prefer or require",
    async (answer) => {
      expect(await sentAfter(answer, "prefer")).toBe("");
      expect(await sentAfter(answer, "require")).toBe("");
    },
  );

  it("a server that consents but then speaks no TLS gets no clear text", async () => {
    expect(await sentAfter("S", "prefer")).not.toContain("stele");
  });
});

/** Connects to a server that gives this answer to the request for TLS. Returns what the client sends afterwards. */
async function sentAfter(answer: string, mode: string): Promise<string> {
  const sent: Buffer[] = [];
  const server = createServer((socket: Socket) => {
    socket.on("error", () => {});
    socket.once("data", () => {
      socket.on("data", (chunk) => {
        sent.push(chunk);
        socket.destroy();
      });
      socket.write(answer);
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" ? address?.port : undefined;
  const url = `postgres://stele:hunter2@127.0.0.1:${port}/stele?sslmode=${mode}`;
  const client = new PostgresClient({ address: parsePostgresAddress(url) });
  client.on("error", () => {});
  await expect(client.connect()).rejects.toThrow();
  server.close();
  return Buffer.concat(sent).toString("latin1");
}
