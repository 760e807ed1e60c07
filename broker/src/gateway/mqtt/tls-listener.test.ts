import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect as connectTcp } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type ConnectionOptions, type TLSSocket } from "node:tls";
import { afterAll, afterEach, beforeAll, expect, it, onTestFinished, vi } from "vitest";
import { createCertificate } from "../testing/certificates.ts";
import { whenClosed } from "../testing/when-closed.ts";
import { MqttWorld } from "./testing/mqtt-world.ts";
import { RawClient } from "./testing/raw-client.ts";
import { readCertificate } from "../shared/connection/tls/certificate.ts";
import { endAfterExpiryMs } from "../shared/connection/tls/end-at-expiry.ts";
import type { MqttSettings } from "./settings.ts";
import type { TlsListener } from "../shared/connection/tls/tls-listener.ts";

const folder = mkdtempSync(join(tmpdir(), "stele-tls-"));
const files = { certificateFile: join(folder, "certificate.pem"), keyFile: join(folder, "key.pem"), clientCaFile: "" };
const other = { certificateFile: join(folder, "other.pem"), keyFile: join(folder, "other-key.pem"), clientCaFile: "" };

beforeAll(() => {
  createCertificate(files, "first");
  createCertificate(other, "second");
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let world: MqttWorld | undefined;
let listener: TlsListener | undefined;
afterEach(async () => {
  vi.useRealTimers();
  await listener?.drain();
  await world?.stop();
});

async function listen(settings: Partial<MqttSettings> = {}, clientCaFile = ""): Promise<number> {
  world = await MqttWorld.start({ settings });
  listener = world.server.createTlsListener({ ...files, clientCaFile });
  const address = await listener.listen({ host: "127.0.0.1", port: 0 });
  expect(address).toMatch(/^mqtts:\/\/127\.0\.0\.1:\d+$/);
  return Number(new URL(address).port);
}

async function open(port: number, { certificateFile }: typeof files, own: ConnectionOptions = {}): Promise<TLSSocket> {
  const ca = readFileSync(certificateFile);
  const socket = connect({ port, host: "127.0.0.1", servername: "localhost", ca, ...own });
  await once(socket, "secureConnect");
  socket.on("error", () => {}); // the listener may reset the connection
  return socket;
}

it("serves MQTT over TLS", async () => {
  const client = RawClient.over(await open(await listen(), files), 5);
  client.send({ cmd: "connect", clientId: "tls", clean: true, keepalive: 0 });
  expect(await client.next("connack")).toMatchObject({ reasonCode: 0 });
  client.send({ cmd: "publish", topic: "tls", payload: "x", qos: 1, messageId: 1 });
  expect(await client.next("puback")).toMatchObject({ messageId: 1 });
});

it("uses a renewed certificate without a restart, and keeps the previous one while the files are invalid", async () => {
  const port = await listen();
  copyFileSync(other.keyFile, files.keyFile); // half of a renewal: key and certificate do not match
  listener?.reload();
  await open(port, files);
  copyFileSync(other.certificateFile, files.certificateFile);
  listener?.reload();
  const socket = await open(port, other);
  expect(socket.getPeerCertificate().subject.CN).toBe("second");
  createCertificate(files, "first");
});

it("ends a connection when its client's certificate has expired", async () => {
  const port = await listen({}, files.certificateFile);
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
  const [cert, key] = [readFileSync(files.certificateFile), readFileSync(files.keyFile)];
  const socket = await open(port, files, { cert, key });
  const client = RawClient.over(socket, 5);
  client.send({ cmd: "connect", clientId: "expiring", clean: true, keepalive: 0 });
  await client.next("connack");
  vi.advanceTimersByTime(Date.parse(socket.getPeerCertificate().valid_to) + endAfterExpiryMs - Date.now());
  await client.closed;
});

it("closes a connection that does not finish its handshake in time, and one that sends plain MQTT", async () => {
  const port = await listen({ connectTimeoutMs: 300 });
  const silent = connectTcp(port, "127.0.0.1");
  await whenClosed(silent);
  const plain = await RawClient.open(port, 5);
  plain.send({ cmd: "connect", clientId: "plain", clean: true, keepalive: 0 });
  await plain.closed;
});

it.each([
  ["a missing file", { keyFile: "/nowhere/key.pem" }, /^The key for MQTT over TLS cannot be read: ENOENT.*nowhere/],
  ["an invalid certificate", { certificateFile: join(folder, "text") }, /text is not a certificate in PEM/],
  ["a missing authority of clients", { clientCaFile: "/nowhere/ca.pem" }, /^The authority of clients of MQTT.*ENOENT/],
  ["an invalid authority of clients", { clientCaFile: join(folder, "text") }, /text is not a certificate in PEM/],
  [
    "the key of another certificate",
    { keyFile: other.keyFile },
    /is not the key of the certificate .* without a pass phrase/,
  ],
])("says what is wrong with %s", (_, change, message) => {
  writeFileSync(join(folder, "text"), "text");
  expect(() => readCertificate({ ...files, ...change }, "MQTT")).toThrow(message);
});

it.each(["certificateFile", "keyFile", "clientCaFile"])("does not wait for the writer of a pipe (%s)", (name) => {
  const pipe = join(folder, name);
  execFileSync("mkfifo", [pipe]);
  const writer = spawn("sh", ["-c", 'printf text > "$0"', pipe]); // so that a test of a broker that waits fails, and does not hang
  onTestFinished(() => void writer.kill());
  expect(() => readCertificate({ ...files, [name]: pipe }, "MQTT")).toThrow(`cannot be read: ${pipe} is not a file`);
});
