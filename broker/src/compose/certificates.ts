import { isSecured, type TlsServed, tlsServed } from "../config/connection-conflicts.ts";
import { protocolNames } from "../config/connection-ports.ts";
import { environmentName } from "../config/setting.ts";
import type { Config } from "../config/settings.ts";
import { type CertificateFiles, readCertificate } from "../gateway/shared/connection/tls/certificate.ts";
import type { Logger } from "../lib/logger.ts";
import { checkSecretFile } from "../lib/system/secret-file.ts";

const names = { http: "HTTP", ...protocolNames } as const;

/** The certificate files of a protocol that is served over TLS. */
export function certificateFilesOf(config: Config, served: TlsServed): CertificateFiles {
  return {
    certificateFile: config[`${served}TlsCertificateFile`],
    keyFile: config[`${served}TlsKeyFile`],
    clientCaFile: config[`${served}TlsClientCaFile`],
  };
}

/**
 * Reads each configured certificate, and logs a warning for each key file that users other than its owner can open.
 * @throws Error if a certificate cannot be used; its message says why.
 */
export function checkCertificates(config: Config, logger: Logger): void {
  for (const served of tlsServed) check(config, served);
  const secured = tlsServed.filter((served) => isSecured(config, served));
  const keyFiles = secured.map((served) => certificateFilesOf(config, served).keyFile);
  for (const keyFile of new Set(keyFiles)) checkSecretFile(keyFile, logger);
}

/** Reads each configured certificate as the broker does when it starts, and returns the problems. */
export function findCertificateProblems(config: Config): readonly string[] {
  return tlsServed.flatMap((served) => {
    try {
      check(config, served);
      return [];
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      return [`${environmentName(`${served}TlsCertificateFile`)}: ${reason}`];
    }
  });
}

function check(config: Config, served: TlsServed): void {
  if (isSecured(config, served)) readCertificate(certificateFilesOf(config, served), names[served]);
}
