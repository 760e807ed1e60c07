import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer } from "node:tls";
import { afterAll, afterEach, beforeEach, expect, it, vi } from "vitest";
import { silentLogger } from "../../../../lib/logger.ts";
import { createCertificate } from "../../../testing/certificates.ts";
import { RenewedCertificate } from "./renewed-certificate.ts";

const folder = mkdtempSync(join(tmpdir(), "stele-renewed-"));
const [certificateFile, keyFile] = [join(folder, "server.pem"), join(folder, "server-key.pem")];
const files = { certificateFile, keyFile, clientCaFile: "" };

beforeEach(() => createCertificate(files, "server"));
afterEach(() => vi.useRealTimers());
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it("has a warning for health while its files do not belong together", () => {
  const certificate = new RenewedCertificate({ files, protocol: "HTTP", logger: silentLogger });
  const server = createServer();
  expect(certificate.findWarning()).toBeUndefined();
  createCertificate({ ...files, certificateFile: join(folder, "next.pem") }, "next");
  certificate.reload(server);
  expect(certificate.findWarning()).toMatch(
    /^the HTTP certificate \S+server\.pem was not renewed, the previous one stays in use: .*Give the private key/,
  );
  copyFileSync(join(folder, "next.pem"), certificateFile);
  certificate.reload(server);
  expect(certificate.findWarning()).toBeUndefined();
});

it("has a warning for health from the moment at which its certificate expires", () => {
  vi.useFakeTimers({ toFake: ["Date"] });
  const certificate = new RenewedCertificate({ files, protocol: "HTTP", logger: silentLogger });
  vi.setSystemTime(Date.now() + 3 * 86_400_000);
  expect(certificate.findWarning()).toMatch(/server\.pem has expired, so clients refuse it: renew it$/);
});
