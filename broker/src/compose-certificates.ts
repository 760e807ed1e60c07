import { type ConnectionProtocol, connectionProtocols, protocolNames } from "./config/connection-ports.ts";
import type { Config } from "./config/settings.ts";
import { type CertificateFiles, readCertificate } from "./gateway/shared/connection/tls/certificate.ts";

/** Where the certificate of a protocol over TLS is. */
export function certificateFilesOf(config: Config, protocol: ConnectionProtocol): CertificateFiles {
  return { certificateFile: config[`${protocol}TlsCertificateFile`], keyFile: config[`${protocol}TlsKeyFile`] };
}

/** @throws Error that says what is wrong with a certificate that the settings name. */
export function checkCertificates(config: Config): void {
  for (const protocol of connectionProtocols) {
    if (config[`${protocol}TlsPort`] === "off") continue;
    readCertificate(certificateFilesOf(config, protocol), protocolNames[protocol]);
  }
}
