import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { checkCertificates } from "./certificates.ts";
import { findProblems } from "./settings.ts";
import { loadConfig } from "../config/load-config.ts";
import { silentLogger } from "../lib/logger.ts";
import { createCertificate } from "../gateway/testing/certificates.ts";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "certificates-"))));
afterEach(() => rmSync(folder, { recursive: true }));

it("--check-config and a start report a missing or broken certificate of each protocol", async () => {
  const [certificateFile, keyFile, other] = [
    join(folder, "cert.pem"),
    join(folder, "key.pem"),
    join(folder, "other.pem"),
  ];
  const env = {
    STELE_HTTP_TLS_CERTIFICATE_FILE: certificateFile,
    STELE_HTTP_TLS_KEY_FILE: keyFile,
    STELE_MQTT_TLS_PORT: "8883",
    STELE_MQTT_TLS_CERTIFICATE_FILE: other,
    STELE_MQTT_TLS_KEY_FILE: keyFile,
  };
  const loaded = loadConfig({ env, argv: [], readFile: () => "", version: "1" });
  if (loaded.status !== "loaded") throw new Error(JSON.stringify(loaded));
  const { config, secrets } = loaded;
  expect(await findProblems(config, secrets)).toEqual([
    expect.stringMatching(/^STELE_HTTP_TLS_CERTIFICATE_FILE: The certificate for HTTP over TLS cannot be read: ENOENT/),
    expect.stringMatching(/^STELE_MQTT_TLS_CERTIFICATE_FILE: The certificate for MQTT over TLS cannot be read: ENOENT/),
  ]);
  createCertificate({ certificateFile: certificateFile, keyFile: keyFile, clientCaFile: "" }, "stele");
  writeFileSync(other, "no certificate");
  expect(await findProblems(config, secrets)).toEqual([
    expect.stringContaining(`STELE_MQTT_TLS_CERTIFICATE_FILE: ${other} is not a certificate in PEM`),
  ]);
  expect(() => checkCertificates(config, silentLogger)).toThrow(`${other} is not a certificate`);
  createCertificate({ certificateFile: other, keyFile: join(folder, "other.key"), clientCaFile: "" }, "other");
  expect(await findProblems(config, secrets)).toEqual([
    expect.stringContaining(`STELE_MQTT_TLS_CERTIFICATE_FILE: ${keyFile} is not the key of the certificate ${other}`),
  ]);
});

it("a start logs one warning for each key file that other users can open", () => {
  const [certificateFile, keyFile] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  createCertificate({ certificateFile, keyFile, clientCaFile: "" }, "stele");
  const env = {
    STELE_HTTP_TLS_CERTIFICATE_FILE: certificateFile,
    STELE_HTTP_TLS_KEY_FILE: keyFile,
    STELE_STOMP_TLS_PORT: "61614",
    STELE_STOMP_TLS_CERTIFICATE_FILE: certificateFile,
    STELE_STOMP_TLS_KEY_FILE: keyFile,
  };
  const loaded = loadConfig({ env, argv: [], readFile: () => "", version: "1" });
  if (loaded.status !== "loaded") throw new Error(JSON.stringify(loaded));
  const warned: unknown[] = [];
  const logger = { ...silentLogger, warn: (message: string, fields: unknown) => void warned.push([message, fields]) };
  for (const mode of [0o600, 0o640]) {
    chmodSync(keyFile, mode);
    checkCertificates(loaded.config, logger);
  }
  const fields = { file: keyFile, mode: "0640", remedy: `chmod 600 ${keyFile}` };
  expect(warned).toEqual([["secret file is open to other users", fields]]);
});
