import { X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import { describeFileError } from "../../../../lib/system/file-owner.ts";
import { readPlainFile } from "../../../../lib/system/plain-file.ts";

/** Protocols that are served over TLS. */
export type TlsProtocol = "HTTP" | "MQTT" | "STOMP";

/** Paths of the certificate and its key, in PEM. */
export interface CertificateFiles {
  /** The certificate, followed by those of intermediate authorities, if there are any. */
  readonly certificateFile: string;
  /** The private key, without a pass phrase. */
  readonly keyFile: string;
  /** Certificates of the authorities that sign clients' certificates; an empty path if clients need no certificate. */
  readonly clientCaFile: string;
}

/** A certificate and the key that belongs to it. */
export interface Certificate {
  readonly cert: Buffer;
  readonly key: Buffer;
  /** Undefined if clients need no certificate. */
  readonly clientCa: Buffer | undefined;
  readonly validTo: Date;
}

/** @throws Error that names the file and says what is wrong with it. */
export function readCertificate(files: CertificateFiles, protocol: TlsProtocol): Certificate {
  const { certificateFile, keyFile, clientCaFile } = files;
  const cert = readPem(certificateFile, `certificate for ${protocol}`);
  const key = readPem(keyFile, `key for ${protocol}`);
  const { validTo } = parseCertificate(cert, certificateFile);
  try {
    createSecureContext({ cert, key });
  } catch (cause) {
    throw new Error(
      `${keyFile} is not the key of the certificate ${certificateFile}: ${messageOf(cause)}. ${keyAdvice}`,
      {
        cause,
      },
    );
  }
  const clientCa = clientCaFile === "" ? undefined : readPem(clientCaFile, `authority of clients of ${protocol}`);
  if (clientCa !== undefined) parseCertificate(clientCa, clientCaFile);
  return { cert, key, clientCa, validTo: new Date(validTo) };
}

const keyAdvice = "Give the private key of that certificate, in PEM and without a pass phrase.";

function readPem(file: string, what: string): Buffer {
  try {
    return readPlainFile(file);
  } catch (cause) {
    throw new Error(`The ${what} over TLS cannot be read: ${describeFileError(file, cause)}`, { cause });
  }
}

function parseCertificate(cert: Buffer, file: string): X509Certificate {
  try {
    return new X509Certificate(cert);
  } catch (cause) {
    throw new Error(`${file} is not a certificate in PEM: ${messageOf(cause)}`, { cause });
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
