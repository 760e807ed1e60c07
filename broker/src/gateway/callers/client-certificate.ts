import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { ClientCertificate } from "../../engine/access/credential.ts";

/** One name, as Node writes it; in quotes where it holds what separates names. */
const alternativeName = /([A-Za-z0-9 ]+):("(?:[^"\\]|\\.)*"|[^,"]*)(?:, |$)/gy;

/** The certificate that a client has shown; undefined where the listener asks for none. */
export function certificateOf(socket: Socket): ClientCertificate | undefined {
  if (!(socket instanceof TLSSocket) || !socket.authorized) return undefined;
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) return undefined;
  return { names: readNames(certificate.subjectAltName ?? ""), validTo: Date.parse(certificate.validTo) };
}

/** Names such as `DNS:shop.example` and `URI:spiffe://example/shop`. Those in quotes are left out: no principal is called so. */
export function readNames(subjectAltName: string): readonly string[] {
  const names = [...subjectAltName.matchAll(alternativeName)];
  return names.flatMap(([, kind, name = ""]) => (name === "" || name.startsWith('"') ? [] : [`${kind}:${name}`]));
}
