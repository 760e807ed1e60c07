import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { type AddressInfo, connect as connectTcp } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type ConnectionOptions, createServer, type TLSSocket } from "node:tls";
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import { anonymous } from "../engine/access/caller.ts";
import type { CertificateFiles } from "./shared/connection/tls/certificate.ts";
import { certificateOf, readNames } from "./callers/client-certificate.ts";
import { endAfterExpiryMs } from "./shared/connection/tls/end-at-expiry.ts";
import { headersTimeoutMs, pipelinedRunningMax, pipelinedWaitingMax, progressTimeoutMs } from "./limits.ts";
import { createDeferred } from "../lib/deferred.ts";
import { certificateReloadMs } from "./shared/connection/limits.ts";
import { createCertificate } from "./testing/certificates.ts";
import { type Served, serve, testMetrics } from "./testing/serve.ts";
import { whenClosed } from "./testing/when-closed.ts";

const folder = mkdtempSync(join(tmpdir(), "stele-https-"));
const filesOf = (name: string): CertificateFiles => ({
  certificateFile: join(folder, `${name}.pem`),
  keyFile: join(folder, `${name}-key.pem`),
  clientCaFile: "",
});
const [files, other] = [filesOf("server"), filesOf("other")];

beforeAll(() => {
  createCertificate(files, "first");
  createCertificate(other, "second");
});
const sockets: TLSSocket[] = [];
afterEach(() => {
  vi.useRealTimers();
  for (const socket of sockets.splice(0)) socket.destroy();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const serveTls = (): Promise<Served> => serve({ exist: async () => true }, { certificate: files });

async function open({ url }: Served, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const ca = readFileSync(files.certificateFile);
  const socket = connect({
    port: Number(new URL(url).port),
    host: "127.0.0.1",
    servername: "localhost",
    ca,
    ...options,
  });
  sockets.push(socket);
  await once(socket, "secureConnect");
  socket.on("error", () => {}); // the server may reset the connection
  return socket;
}

async function ask(socket: TLSSocket, fields = ""): Promise<string> {
  socket.write(`GET /rest/exist?topic=a HTTP/1.1\r\nhost: localhost\r\n${fields}\r\n`);
  const [chunk] = (await once(socket, "data")) as [Buffer];
  return chunk.toString();
}

it("a close of the server closes a connection that sent nothing after its handshake", async () => {
  const server = await serve({}, { certificate: files, closeDeadlineMs: 600_000 });
  const closed = once(await open(server), "close");
  await server.close();
  await closed;
});

it("a close of the server closes a connection that sent half of its headers", async () => {
  const server = await serve({}, { certificate: files, closeDeadlineMs: 600_000 });
  const socket = await open(server);
  const closed = once(socket, "close");
  socket.write("GET /rest/exist?topic=a HTTP/1.1\r\nhost: loc");
  await server.close();
  await closed;
});

it("a close of the server closes a connection in the middle of its handshake", async () => {
  const server = await serve({}, { certificate: files, closeDeadlineMs: 600_000 });
  const socket = connectTcp({ port: Number(new URL(server.url).port), host: "127.0.0.1" });
  await once(socket, "connect");
  const closed = whenClosed(socket);
  socket.write(Buffer.from("1603010200010001", "hex"));
  await server.close();
  await closed;
});

it("serves HTTP over TLS at an https address", async () => {
  await using served = await serveTls();
  expect(served.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
  expect(await ask(await open(served))).toMatch(/^HTTP\/1\.1 200 [^]*true$/);
});

it("uses a renewed certificate for new connections, and keeps open ones", async () => {
  await using served = await serveTls();
  const before = await open(served);
  copyFileSync(other.keyFile, files.keyFile); // half of a renewal: key and certificate do not match
  served.reload();
  expect(await ask(await open(served))).toContain("true");
  const former = readFileSync(files.certificateFile);
  copyFileSync(other.certificateFile, files.certificateFile);
  served.reload();
  const after = await open(served);
  expect(after.getPeerCertificate().subject.CN).toBe("second");
  expect(await ask(before)).toContain("true");
  expect(before.getPeerX509Certificate()?.toString()).toBe(former.toString());
  const context = { maxVersion: "TLSv1.1", minVersion: "TLSv1", ciphers: "ALL:@SECLEVEL=0" } as const;
  await expect(open(served, context), "the renewed context keeps the lowest TLS version").rejects.toThrow(
    /version|closed|ended/i,
  );
  after.destroy();
  createCertificate(files, "first");
});

/** The name in the certificate that a server shows to `openssl s_client`. */
async function shownName({ url }: Served): Promise<string | undefined> {
  const args = ["s_client", "-connect", `127.0.0.1:${new URL(url).port}`, "-servername", "localhost"];
  const child = spawn("openssl", args, { stdio: ["ignore", "pipe", "ignore"] });
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
  await once(child, "close");
  return /subject=CN ?= ?(\w+)/.exec(text)?.[1];
}

it("reloads its certificate every minute, and keeps open connections", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  await using served = await serveTls();
  const before = await open(served);
  expect(await shownName(served)).toBe("first");
  createCertificate(files, "third");
  expect(await shownName(served)).toBe("first");
  vi.advanceTimersByTime(certificateReloadMs);
  expect(await shownName(served)).toBe("third");
  expect(await ask(before)).toContain("true");
  createCertificate(files, "first");
});

it("warns once when the certificate in use expires, and once for each expired certificate that replaces it", async () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  await using served = await serveTls();
  const warned = () => served.warnings.map(({ message }) => message);
  served.reload();
  expect(warned()).toEqual([]);
  vi.setSystemTime(Date.now() + 3 * 86_400_000);
  for (let count = 0; count < 2; count += 1) served.reload();
  expect(warned()).toEqual(["HTTP certificate has expired; clients refuse it"]);
  createCertificate(files, "first");
  for (let count = 0; count < 2; count += 1) served.reload();
  expect(warned()).toHaveLength(2);
});

it("serves pages of its own https origin, and refuses pages of the http origin", async () => {
  await using served = await serveTls();
  const [own, plain] = ["https://localhost", "http://localhost"];
  expect(await ask(await open(served), `origin: ${own}\r\n`)).toMatch(/^HTTP\/1\.1 200/);
  expect(await ask(await open(served), `origin: ${plain}\r\n`)).toMatch(/^HTTP\/1\.1 403/);
});

it("ignores upgrades to h2c, serves the requests, and leaves no listeners on their connection", async () => {
  const route = { path: "/mqtt", protocol: "MQTT", subprotocols: ["mqtt"] } as const;
  const upgrades = [
    { ...route, needsSubprotocol: true, messageBytesMax: 1_000, accept: () => {}, endAll: async () => {} },
  ] as const;
  const certificate = { ...files, clientCaFile: files.certificateFile };
  const warned = vi.spyOn(process, "emitWarning");
  await using served = await serve({ exist: async () => true }, { certificate, upgrades });
  const [cert, key] = [readFileSync(files.certificateFile), readFileSync(files.keyFile)];
  const socket = await open(served, { cert, key });
  const fields = "connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n";
  for (let count = 0; count < 20; count += 1) expect(await ask(socket, fields)).toMatch(/^HTTP\/1\.1 200/);
  expect(warned).not.toHaveBeenCalled(); // Node warns of more than ten listeners of one event.
  warned.mockRestore();
});

it("refuses TLS renegotiation", async () => {
  await using served = await serveTls();
  const socket = await open(served, { maxVersion: "TLSv1.2" });
  const failure = await new Promise((resolve) => {
    socket.once("error", resolve);
    socket.renegotiate({}, resolve);
  });
  expect(String(failure)).toMatch(/no renegotiation|NO_RENEGOTIATION/i);
});

it("closes a connection that sends plain HTTP", async () => {
  await using served = await serveTls();
  const socket = connectTcp(Number(new URL(served.url).port), "127.0.0.1");
  const closed = whenClosed(socket);
  let answer = "";
  socket.on("data", (chunk: Buffer) => (answer += chunk.toString("latin1")));
  socket.write("GET /rest/exist?topic=a HTTP/1.1\r\nhost: localhost\r\n\r\n");
  await closed;
  expect(answer).not.toContain("HTTP/1.1");
});

it("passes the client's certificate to `authenticate`", async () => {
  const origins: unknown[] = [];
  const authenticate = (_: unknown, origin: unknown) => {
    origins.push(origin);
    return anonymous;
  };
  const certificate = { ...files, clientCaFile: files.certificateFile };
  await using served = await serve({ exist: async () => true, authenticate }, { certificate });
  const [cert, key] = [readFileSync(files.certificateFile), readFileSync(files.keyFile)];
  const socket = await open(served, { cert, key });
  expect(await ask(socket)).toContain("true");
  const validTo = Date.parse(socket.getPeerCertificate().valid_to);
  expect(origins).toMatchObject([{ certificate: { names: ["DNS:localhost", "URI:stele:test"], validTo } }]);
});

it("ends a connection when its client's certificate has expired, even if the client gave a key", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
  const certificate = { ...files, clientCaFile: files.certificateFile };
  await using served = await serve({ exist: async () => true }, { certificate });
  const [cert, key] = [readFileSync(files.certificateFile), readFileSync(files.keyFile)];
  const socket = await open(served, { cert, key });
  const closed = once(socket, "close");
  vi.advanceTimersByTime(Date.parse(socket.getPeerCertificate().valid_to) - Date.now());
  expect(await ask(socket, "authorization: Bearer key\r\n")).toContain("true");
  vi.advanceTimersByTime(endAfterExpiryMs);
  await closed;
});

it("ignores a client certificate that no trusted authority signed", async () => {
  const [cert, key] = [readFileSync(files.certificateFile), readFileSync(files.keyFile)];
  const server = createServer({ cert, key, requestCert: true, rejectUnauthorized: false }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const accepted = once(server, "secureConnection") as Promise<[TLSSocket]>;
  const { port } = server.address() as AddressInfo;
  sockets.push(connect({ port, host: "127.0.0.1", servername: "localhost", ca: cert, cert, key }));
  const [socket] = await accepted;
  socket.on("error", () => {}); // the client may reset the connection
  expect(socket.getPeerX509Certificate()?.subject).toBe("CN=first");
  expect(certificateOf(socket)).toBeUndefined();
  server.close();
});

it.each([
  ["", []],
  [
    "DNS:a.example, URI:spiffe://a/b, IP Address:127.0.0.1",
    ["DNS:a.example", "URI:spiffe://a/b", "IP Address:127.0.0.1"],
  ],
  ['DNS:a.example, URI:"http://x, DNS:admin.example"', ["DNS:a.example"]],
  ['URI:"\\", DNS:admin.example"', []],
  ["DNS:", []],
])("parses the subjectAltName %j as %j", (text, names) => {
  expect(readNames(text)).toEqual(names);
});

it("a close of the server ends a connection that is still in its TLS handshake at the close deadline", async () => {
  const served = await serve({}, { certificate: files, closeDeadlineMs: 1 });
  const { port } = new URL(served.url);
  const socket = connectTcp(Number(port), "127.0.0.1");
  await once(socket, "connect");
  await ask(await open(served)); // By then the server has accepted the first connection.
  const began = performance.now();
  await served.close();
  expect(performance.now() - began).toBeLessThan(headersTimeoutMs / 2);
  socket.destroy();
});

it("resets a connection that has given too many wrong credentials", async () => {
  const rejected = { kind: "rejected", reason: "too many", isClosed: true } as const;
  await using served = await serve({ authenticate: () => Promise.resolve(rejected) }, { certificate: files });
  const socket = await open(served);
  const closed = whenClosed(socket);
  socket.write("GET /rest/exist?topic=a HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer x\r\n\r\n");
  await closed;
  expect(served.calls).toEqual([]);
});

it("resets a connection that pipelines more requests than may run and wait", async () => {
  const reasons: string[] = [];
  const metrics = { ...testMetrics, connectionEnded: (reason: string) => void reasons.push(reason) };
  const options = { certificate: files, metrics, closeDeadlineMs: 100 };
  await using served = await serve({ open: () => new Promise(() => {}) }, options);
  const socket = await open(served);
  const closed = whenClosed(socket);
  const get = "GET /rest/open?topic=a HTTP/1.1\r\nhost: localhost\r\n\r\n";
  socket.write(get.repeat(2 + pipelinedRunningMax + pipelinedWaitingMax));
  await closed;
  expect(reasons).toEqual(["memory"]);
});

it("resets a connection whose client does not read its answer in time", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  const reasons: string[] = [];
  const metrics = { ...testMetrics, connectionEnded: (reason: string) => void reasons.push(reason) };
  const asked = createDeferred<void>();
  const topics = Array.from({ length: 99 }, () => ({ name: "x".repeat(200_000) }));
  const list = async () => {
    setImmediate(() => asked.resolve());
    return { total: 1, pageIndex: 0, pageSize: 99, topics } as never; // The fields that answers use.
  };
  await using served = await serve({ list }, { certificate: files, metrics });
  const socket = await open(served);
  socket.pause().write("GET /rest/list HTTP/1.1\r\nhost: localhost\r\n\r\n");
  await asked.promise;
  await vi.advanceTimersByTimeAsync(2 * progressTimeoutMs);
  await whenClosed(socket.resume());
  expect(reasons).toEqual(["slow"]);
});
