import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { ClientCertificate } from "../../engine/access/credential.ts";

/** One name, as Node writes it. Node quotes a name that contains a separator. */
const alternativeName = /([A-Za-z0-9 ]+):("(?:[^"\\]|\\.)*"|[^,"]*)(?:, |$)/gy;

/** The verified certificate of a client; undefined without one. */
export function certificateOf(socket: Socket): ClientCertificate | undefined {
  if (!(socket instanceof TLSSocket) || !socket.authorized) return undefined;
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) return undefined;
  return { names: readNames(certificate.subjectAltName ?? ""), validTo: Date.parse(certificate.validTo) };
}

/** Names such as `DNS:shop.example` and `URI:spiffe://example/shop`. Empty and quoted names are left out: no principal has such a name. */
export function readNames(subjectAltName: string): readonly string[] {
  const names = [...subjectAltName.matchAll(alternativeName)];
  return names.flatMap(([, kind, name = ""]) => (name === "" || name.startsWith('"') ? [] : [`${kind}:${name}`]));
}
