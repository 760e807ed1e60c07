import { pathText } from "./setting.ts";

/** The files of a certificate. `what` is what they serve, such as `MQTT over TLS`. */
export function certificateFile(section: string, what: string) {
  return pathText({
    section,
    description: `File with the certificate for ${what}, in PEM, followed by those of the authorities between it and the root. The broker reads it again every minute.`,
  });
}

export function keyFile(section: string) {
  return pathText({
    section,
    description: "File with the private key of that certificate, in PEM, without a pass phrase.",
  });
}

export function clientCaFile(section: string, what: string) {
  return pathText({
    section,
    description: `File with the authorities of clients' certificates for ${what}, in PEM. With it, every client must show a certificate that one of them signed; see [access.md](access.md#client-certificates).`,
  });
}
