import { pathText } from "./setting.ts";

/** The file of a certificate. `what` names what it serves, such as `MQTT over TLS`; `effect` is a further sentence of the description. */
export function certificateFile(section: string, what: string, effect = "") {
  return pathText({
    section,
    description: `File with the certificate for ${what}, in PEM, followed by its intermediate certificates. The broker reads it again every minute.${effect}`,
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
    description: `File with the certificates of the authorities for clients of ${what}, in PEM. With it, every client must show a certificate that one of them signed; see [access.md](access.md#client-certificates).`,
  });
}
