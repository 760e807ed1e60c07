import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer as createTlsServer } from "node:tls";
import { expect, it, onTestFinished, vi } from "vitest";
import { examineAddress } from "./examine-address.ts";
import { createCertificate, createExpiredCertificate } from "../../gateway/testing/certificates.ts";

it("reports a broker that accepts the connection, but does not answer within 10 s", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const server = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => {
    vi.useRealTimers();
    server.close();
  });
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const findings = examineAddress(url, new AbortController().signal);
  const [socket] = await once(server, "connection");
  vi.advanceTimersByTime(10_000);
  expect(await findings).toEqual([
    {
      check: "address",
      status: "failed",
      detail: `${url} does not answer within 10 s`,
      advice: expect.stringContaining("restart"),
    },
  ]);
  socket.destroy();
});

it("reports a port that the Fetch standard blocks", async () => {
  const findings = await examineAddress("http://127.0.0.1:6000", new AbortController().signal);
  expect(findings).toMatchObject([
    {
      status: "failed",
      detail: "http://127.0.0.1:6000 does not answer (bad port)",
      advice: expect.stringMatching(/start the broker with another --port$/),
    },
  ]);
});

async function listen(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function adviceFor(url: string): Promise<string | undefined> {
  const [finding] = await examineAddress(url, new AbortController().signal);
  expect(finding?.status).toBe("failed");
  return finding?.advice;
}

it.each([
  ["http", "ends the connection; write https if the broker speaks TLS"],
  [
    "https",
    "ends the connection; a broker with httpTlsClientCaFile does so, because stele shows no client certificate",
  ],
])("reports what may be wrong at an %s address that ends the connection", async (scheme, advice) => {
  const address = await listen(createServer((socket) => socket.once("data", () => socket.destroy())));
  expect(await adviceFor(`${scheme}://${address}`)).toMatch(`something listens there, but ${advice}`);
});

it.each([
  [
    "after a request, as a listener for STOMP does",
    (socket: Socket) => socket.once("data", () => socket.end("ERROR\n\n\0")),
  ],
  ["at once, as a listener for SSH does", (socket: Socket) => socket.resume().end("SSH-2.0-OpenSSH_10.2\r\n")],
])("says that the answer is not HTTP where something speaks %s", async (_, onConnection) => {
  const address = await listen(createServer(onConnection));
  expect(await adviceFor(`http://${address}`)).toBe(
    "something listens there, but the answer is not HTTP; write https if the broker speaks TLS (httpTlsCertificateFile), or name another address with --url",
  );
});

it("does not say that something listens if fetch gives no reason for its failure", async () => {
  const httpAdvice =
    "write https if the broker speaks TLS (httpTlsCertificateFile), or name another address with --url";
  expect(await adviceFor("http://me:secret@127.0.0.1:1")).toBe(httpAdvice);
  expect(await adviceFor("https://me:secret@127.0.0.1:1")).toBe("name another address with --url");
});

it("advises to start the broker if nothing listens", async () => {
  const server = createServer();
  const address = await listen(server);
  await new Promise((resolve) => server.close(resolve));
  for (const scheme of ["http", "https"]) {
    const advice = "start the broker with stele start, or name another address with --url";
    expect(await adviceFor(`${scheme}://${address}`)).toBe(advice);
  }
});

it("advises to write http if the listener does not speak TLS", async () => {
  const address = await listen(createHttpServer());
  expect(await adviceFor(`https://${address}`)).toMatch(/^something listens there, .*; write http if/);
});

it("advises to write https if the listener speaks TLS", async () => {
  const address = await listen(createTlsServer());
  expect(await adviceFor(`http://${address}`)).toMatch(/^something listens there, .*; write https if/);
});

it("says that the listener ends the connection if TLS fails, but not because of the certificate", async () => {
  const address = await listen(createTlsServer()); // It has no certificate, so no cipher fits.
  expect(await adviceFor(`https://${address}`)).toMatch(/^something listens there, but ends the connection; /);
});

const adviceForDates = "correct this machine's clock, or renew the broker's certificate";

it.each([
  ["is of a private authority", createCertificate, /^if a private authority signed .* NODE_EXTRA_CA_CERTS/],
  ["has expired", createExpiredCertificate, adviceForDates],
])("says what to do if the certificate %s", async (_, create, advice) => {
  const folder = mkdtempSync(join(tmpdir(), "stele-doctor-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const [key, cert] = [join(folder, "key.pem"), join(folder, "certificate.pem")];
  create({ certificateFile: cert, keyFile: key, clientCaFile: "" }, "localhost");
  const address = await listen(createTlsServer({ key: readFileSync(key), cert: readFileSync(cert) }));
  expect(await adviceFor(`https://${address}`)).toMatch(advice);
});

it("says what to do if the certificate is not valid yet", async () => {
  onTestFinished(() => void vi.unstubAllGlobals());
  const cause = Object.assign(new Error("certificate is not yet valid"), { code: "CERT_NOT_YET_VALID" });
  vi.stubGlobal("fetch", () => Promise.reject(new TypeError("fetch failed", { cause })));
  expect(await adviceFor("https://localhost")).toContain(adviceForDates);
});
