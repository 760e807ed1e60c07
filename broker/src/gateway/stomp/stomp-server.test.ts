import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { type AddressInfo, connect as connectTcp, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { afterEach, expect, it, vi } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { testCaller } from "../../engine/testing/as-caller.ts";
import { closeGraceMs } from "../shared/connection/limits.ts";
import { HeldLedger } from "../testing/held-ledger.ts";
import { RawClient } from "./testing/raw-client.ts";
import { StompWorld, type StompWorldOptions } from "./testing/stomp-world.ts";

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

async function start(options: StompWorldOptions = {}): Promise<StompWorld> {
  const world = await StompWorld.start(options);
  ends.push(() => world.stop());
  return world;
}

/** Starts a server that gives its WebSocket connections to the world. Returns its URL. */
async function startWebSockets(world: StompWorld): Promise<string> {
  const upgrades = new WebSocketServer({ host: "127.0.0.1", port: 0 });
  upgrades.on("connection", (webSocket) => {
    world.server.route.accept({ webSocket, caller: testCaller });
  });
  await once(upgrades, "listening");
  ends.push(() => upgrades.close());
  const { port } = upgrades.address() as AddressInfo; // listens on TCP
  return `ws://127.0.0.1:${port}`;
}

async function openWebSocket(url: string): Promise<{ webSocket: WebSocket; next: () => Promise<[Buffer, boolean]> }> {
  const webSocket = new WebSocket(url);
  const messages: [Buffer, boolean][] = [];
  webSocket.on("message", (data: Buffer, isBinary) => void messages.push([data, isBinary]));
  await once(webSocket, "open");
  const next = async (): Promise<[Buffer, boolean]> => {
    while (messages.length === 0) await once(webSocket, "message");
    return messages.shift() ?? expect.fail("no message");
  };
  return { webSocket, next };
}

it.each([false, true])(
  "answers over WebSocket in the type of message that the client uses, binary: %s",
  async (binary) => {
    const { webSocket, next } = await openWebSocket(await startWebSockets(await start()));
    for (const piece of ["CONN", "ECT\naccept-version:1.2\n\n\0SUBSCRIBE\nid:1\ndestination:t\nreceipt:r\n\n\0"]) {
      webSocket.send(Buffer.from(piece), { binary });
    }
    const [connected, isBinary] = await next();
    expect(connected.toString()).toMatch(/^CONNECTED\n/);
    expect(isBinary).toBe(binary);
    expect((await next())[0].toString()).toContain("receipt-id:r");
    webSocket.send(Buffer.from("SEND\ndestination:t\n\n\u00e4\0"), { binary });
    expect((await next())[1]).toBe(binary);
  },
);

it("sends invalid UTF-8 in a binary message, even to a client that began with text", async () => {
  const { webSocket, next } = await openWebSocket(await startWebSockets(await start()));
  webSocket.send("CONNECT\naccept-version:1.2\n\n\0SUBSCRIBE\nid:1\ndestination:t\n\n\0");
  expect((await next())[1]).toBe(false);
  webSocket.send(Buffer.concat([Buffer.from("SEND\ndestination:t\n\n"), Buffer.of(0xc3, 0x28, 0)]));
  const [message, isBinary] = await next();
  expect(isBinary).toBe(true);
  expect(message.includes(Buffer.of(0xc3, 0x28, 0))).toBe(true);
});

it("counts connections over TCP and WebSocket together", async () => {
  const watched: (() => number)[] = [];
  const watchConnections = (read: () => number): void => void watched.push(read);
  const world = await start({ connectionsMax: 2, metrics: { watchConnections } });
  const url = await startWebSockets(world);
  const first = await RawClient.connect(world.port);
  await openWebSocket(url);
  const third = await RawClient.open(world.port);
  await third.closed;
  expect(watched.map((read) => read())).toEqual([2]);
  const { webSocket } = await openWebSocket(url);
  await once(webSocket, "close");
  first.send("DISCONNECT");
  await first.closed;
  await RawClient.connect(world.port);
});

it.each([
  ["SEND is answered", "SEND\ndestination:t\n\n\0"],
  ["COMMIT ends", "BEGIN\ntransaction:x\n\n\0SEND\ndestination:t\ntransaction:x\n\n\0COMMIT\ntransaction:x\n\n\0"],
])("counts a connection that its client has closed until its %s", async (_, frames) => {
  const ledger = new HeldLedger();
  const reads: (() => number)[] = [];
  const watchConnections = (read: () => number): void => void reads.push(read);
  const world = await start({ connectionsMax: 1, change: ledger.change, metrics: { watchConnections } });
  await world.broker.open({ topic: "t", groupId: undefined });
  const { webSocket } = await openWebSocket(await startWebSockets(world));
  ledger.hold();
  webSocket.send(`CONNECT\naccept-version:1.2\n\n\0${frames}`);
  await ledger.reached;
  webSocket.close();
  await once(webSocket, "close");
  for (let count = 0; count < 10; count += 1) {
    const refused = await RawClient.open(world.port);
    refused.send("CONNECT", { "accept-version": "1.2" });
    expect(await refused.nextAny()).toBe(undefined);
  }
  ledger.release();
  await vi.waitFor(() => expect(reads[0]?.()).toBe(0), 30_000);
  await RawClient.connect(world.port);
});

it("counts answers by command and code", async () => {
  const answers: string[] = [];
  const world = await start({ metrics: { answered: (command, code = 0) => void answers.push(`${command} ${code}`) } });
  const client = await RawClient.connect(world.port);
  client.send("SEND", { destination: "a", receipt: "1" });
  await client.next("RECEIPT");
  client.send("SEND", { destination: "a+", receipt: "2" });
  await client.next("ERROR");
  expect(answers).toEqual(["CONNECTED 0", "RECEIPT 0", "ERROR 100106"]);
});

it("counts no RECEIPT that could not be sent", async () => {
  const answers: string[] = [];
  const reads: (() => number)[] = [];
  const ledger = new HeldLedger();
  const world = await start({
    change: ledger.change,
    metrics: {
      answered: (command) => void answers.push(command),
      watchConnections: (read) => void reads.push(read),
    },
  });
  await world.broker.open({ topic: "a", groupId: undefined });
  const client = await RawClient.connect(world.port);
  ledger.hold();
  client.send("SEND", { destination: "a", receipt: "1" });
  await ledger.reached;
  client.reset();
  await vi.waitFor(() => expect(reads[0]?.()).toBe(0), 30_000);
  ledger.release();
  await vi.waitFor(async () => {
    expect(await world.broker.state({ topic: "a", groupId: undefined })).toMatchObject({ sequence: 1 });
  }, 30_000);
  await RawClient.connect(world.port);
  expect(answers).toEqual(["CONNECTED", "CONNECTED"]);
});

it("closes a WebSocket connection after an ERROR at once, and disconnects a client that does not answer", async () => {
  const url = await startWebSockets(await start());
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }); // stops the broker's timers
  ends.push(() => vi.useRealTimers());
  const { webSocket, next } = await openWebSocket(url);
  const closed = once(webSocket, "close");
  webSocket.send("HELLO\n\n\0");
  expect((await next())[0].toString()).toMatch(/^ERROR\n/);
  await closed;
  const silent = await openSilentWebSocket(url);
  let text = "";
  silent.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
  while (!text.includes("ERROR\n")) await once(silent, "data");
  const cutOff = once(silent, "close");
  vi.advanceTimersByTime(closeGraceMs);
  await cutOff;
});

/** A WebSocket connection that has sent a frame with an unknown command, and answers nothing. */
async function openSilentWebSocket(url: string): Promise<Socket> {
  const socket = connectTcp(Number(new URL(url).port), "127.0.0.1");
  const key = Buffer.alloc(16).toString("base64");
  socket.write(
    `GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`,
  );
  await once(socket, "data");
  const frame = Buffer.from("HELLO\n\n\0");
  socket.write(Buffer.concat([Buffer.of(0x81, 0x80 | frame.length, 0, 0, 0, 0), frame])); // text, masked with zeros
  return socket;
}

it("serves STOMP over TLS", async () => {
  const folder = mkdtempSync(join(tmpdir(), "stele-stomp-tls-"));
  ends.push(() => rmSync(folder, { recursive: true, force: true }));
  const files = {
    certificateFile: join(folder, "certificate.pem"),
    keyFile: join(folder, "key.pem"),
    clientCaFile: "",
  };
  const form = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
  const names = ["-subj", "/CN=stomp", "-addext", "subjectAltName=DNS:localhost"];
  const out = ["-keyout", files.keyFile, "-out", files.certificateFile];
  execFileSync("openssl", [...form, ...out, ...names], { stdio: "ignore" });
  const listener = (await start()).server.createTlsListener(files);
  ends.push(() => listener.drain());
  const address = await listener.listen({ host: "127.0.0.1", port: 0 });
  expect(address).toMatch(/^stomp\+ssl:\/\/127\.0\.0\.1:\d+$/);
  const ca = readFileSync(files.certificateFile);
  const socket = connect({ port: Number(new URL(address).port), host: "127.0.0.1", servername: "localhost", ca });
  await once(socket, "secureConnect");
  const client = RawClient.over(socket);
  client.send("CONNECT", { "accept-version": "1.1" });
  await client.next("CONNECTED");
  client.destroy();
});
