import { isSecured, type TlsServed, tlsServed } from "./config/connection-conflicts.ts";
import { protocolNames } from "./config/connection-ports.ts";
import type { Config } from "./config/settings.ts";
import { type CertificateFiles, readCertificate } from "./gateway/shared/connection/tls/certificate.ts";

const names = { http: "HTTP", ...protocolNames } as const;

/** Where the certificate of what is served over TLS is. */
export function certificateFilesOf(config: Config, served: TlsServed): CertificateFiles {
  return {
    certificateFile: config[`${served}TlsCertificateFile`],
    keyFile: config[`${served}TlsKeyFile`],
    clientCaFile: config[`${served}TlsClientCaFile`],
  };
}

/** @throws Error that says what is wrong with a certificate that the settings name. */
export function checkCertificates(config: Config): void {
  for (const served of tlsServed) {
    if (isSecured(config, served)) readCertificate(certificateFilesOf(config, served), names[served]);
  }
}
