import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { get } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { runKeys } from "./keys.ts";
import { type RunningServer, startServer } from "./start-server.ts";
import { loadConfig } from "../config/load-config.ts";
import { certificateReloadMs } from "../gateway/shared/connection/limits.ts";
import { createCertificate, createExpiredCertificate } from "../gateway/testing/certificates.ts";
import { silentLogger } from "../lib/logger.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "stele-listeners-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

async function statusOf(address: string | undefined): Promise<number> {
  return (await fetch(`${address}/tail?topic=a`, { method: "HEAD" })).status;
}

/** Starts a broker with an operators' listener, and without MQTT and STOMP. */
async function start(others: Readonly<Record<string, string>> = {}): Promise<RunningServer> {
  const env = {
    STELE_PORT: "0",
    STELE_ADMIN_PORT: "0",
    STELE_MQTT_PORT: "off",
    STELE_STOMP_PORT: "off",
    STELE_DATA_DIR: join(folder, "data"),
    ...others,
  };
  const outcome = loadConfig({ env, argv: [], readFile: () => "", version: "test" });
  if (outcome.status !== "loaded") throw new Error(JSON.stringify(outcome));
  return startServer(outcome.config, { logger: silentLogger, secrets: outcome.secrets });
}

it("serves tails on the clients' listener only, if operators have their own listener", async () => {
  const server = await start();
  const [clients, operators] = server.listeners.map(({ address }) => address);
  expect([await statusOf(clients), await statusOf(operators)]).toEqual([200, 404]);
  await server.stop();
});

/** The health page over TLS, whatever the certificate. */
function readHealth(address: string | undefined, headers = {}): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const request = get(`${address}/health/ready`, { agent: false, rejectUnauthorized: false, headers }, (answer) =>
      resolve(json(answer)),
    );
    request.on("error", reject);
  });
}

it("warns in the health page of each certificate that was not renewed, once for both listeners of HTTP", async () => {
  const [certificateFile, keyFile] = [join(folder, "http.pem"), join(folder, "http-key.pem")];
  const [mqttFile, mqttKeyFile] = [join(folder, "mqtt.pem"), join(folder, "mqtt-key.pem")];
  createCertificate({ certificateFile, keyFile, clientCaFile: "" }, "http");
  createCertificate({ certificateFile: mqttFile, keyFile: mqttKeyFile, clientCaFile: "" }, "mqtt");
  onTestFinished(() => void vi.useRealTimers());
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const server = await start({
    STELE_HTTP_TLS_CERTIFICATE_FILE: certificateFile,
    STELE_HTTP_TLS_KEY_FILE: keyFile,
    STELE_MQTT_TLS_PORT: "0",
    STELE_MQTT_TLS_CERTIFICATE_FILE: mqttFile,
    STELE_MQTT_TLS_KEY_FILE: mqttKeyFile,
  });
  for (const file of [certificateFile, mqttFile]) writeFileSync(file, "half a renewal");
  vi.advanceTimersByTime(certificateReloadMs);
  vi.useRealTimers();
  const warning = expect.stringMatching(/^the HTTP certificate [^;]+; the MQTT certificate [^;]+$/);
  expect(await readHealth(server.url)).toMatchObject({ status: "ready", groups: [{ warning }] });
  await server.stop();
});

it("does not warn of a certificate that was renewed while the operators' listener does not run", async () => {
  const files = { certificateFile: join(folder, "http.pem"), keyFile: join(folder, "http-key.pem"), clientCaFile: "" };
  createExpiredCertificate(files);
  const words = ["create", "--principal", "ops", "--role", "admin", "--data-dir", join(folder, "data")];
  const { output: key } = await runKeys(words, { env: {}, now: Date.now });
  onTestFinished(() => void vi.useRealTimers());
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  const server = await start({
    STELE_ACCESS: "{}",
    STELE_ADMIN_PORT: "",
    STELE_ADMIN_HOST: "192.0.2.1", // No machine has this address (RFC 5737).
    STELE_HTTP_TLS_CERTIFICATE_FILE: files.certificateFile,
    STELE_HTTP_TLS_KEY_FILE: files.keyFile,
  });
  expect(server.listeners.map(({ name }) => name)).toEqual(["HTTP"]);
  const health = () => readHealth(server.url, { authorization: `Bearer ${key.trim()}` });
  const expired = expect.stringMatching(/^the HTTP certificate [^;]+ has expired, [^;]+$/);
  expect(await health()).toMatchObject({ groups: [{ warning: expired }] });
  createCertificate(files, "renewed");
  vi.advanceTimersByTime(certificateReloadMs);
  vi.useRealTimers();
  expect(await health()).toMatchObject({ groups: [expect.not.objectContaining({ warning: expect.anything() })] });
  await server.stop();
});
