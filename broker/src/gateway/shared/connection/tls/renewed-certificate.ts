import { constants } from "node:crypto";
import type { SecureContextOptions, Server } from "node:tls";
import { joinTexts } from "../../../../lib/join-texts.ts";
import type { Logger } from "../../../../lib/logger.ts";
import { certificateReloadMs } from "../limits.ts";
import { type Certificate, type CertificateFiles, readCertificate, type TlsProtocol } from "./certificate.ts";

/** Suites with forward secrecy and authenticated encryption; those of TLS 1.3 first. */
const ciphers = [
  "TLS_AES_256_GCM_SHA384",
  "TLS_CHACHA20_POLY1305_SHA256",
  "TLS_AES_128_GCM_SHA256",
  ...["ECDSA", "RSA"].flatMap((kind) => [
    `ECDHE-${kind}-AES128-GCM-SHA256`,
    `ECDHE-${kind}-AES256-GCM-SHA384`,
    `ECDHE-${kind}-CHACHA20-POLY1305`,
  ]),
].join(":");

export interface RenewedCertificateOptions {
  readonly protocol: TlsProtocol;
  readonly files: CertificateFiles;
  readonly logger: Logger;
}

/** Options of a server over TLS. */
export interface TlsServerOptions extends SecureContextOptions {
  /** Whether each client must show a certificate. A handshake without one, or with one of an untrusted authority, fails. */
  readonly requestCert: boolean;
  readonly rejectUnauthorized: boolean;
}

/** The certificate of a server, reloaded while the server listens. Open connections keep theirs. */
export class RenewedCertificate {
  readonly #options: RenewedCertificateOptions;
  #certificate: Certificate;
  #problem: string | undefined;
  /** The certificate whose expiry the log has named. */
  #expired: Certificate | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** @throws Error that says what is wrong with the files. */
  constructor(options: RenewedCertificateOptions) {
    this.#options = options;
    this.#certificate = readCertificate(options.files, options.protocol);
    this.#warnOfExpiry();
  }

  get serverOptions(): TlsServerOptions {
    const asksClients = this.#certificate.clientCa !== undefined;
    return { ...toContext(this.#certificate), requestCert: asksClients, rejectUnauthorized: asksClients };
  }

  /** Reloads the files every minute. */
  watchFor(server: Server): void {
    this.#timer = setInterval(() => this.reload(server), certificateReloadMs).unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Uses renewed files. While they are invalid, the previous certificate stays in use. Logs each new problem once, and the expiry of a certificate once. */
  reload(server: Server): void {
    const { files, logger, protocol } = this.#options;
    try {
      const found = readCertificate(files, protocol);
      this.#problem = undefined;
      if (!isSame(found, this.#certificate)) {
        server.setSecureContext(toContext(found));
        this.#certificate = found;
        logger.info(`${protocol} certificate renewed`, { file: files.certificateFile, validTo: found.validTo });
      }
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      if (problem !== this.#problem)
        logger.warn(`${protocol} certificate not renewed; the previous one stays in use`, { problem });
      this.#problem = problem;
    }
    this.#warnOfExpiry();
  }

  /** What is wrong with the files and what to do, for health; undefined if nothing is. */
  findWarning(): string | undefined {
    const { files, protocol } = this.#options;
    const what = `the ${protocol} certificate ${files.certificateFile}`;
    return joinTexts([
      this.#problem && `${what} was not renewed, the previous one stays in use: ${this.#problem}`,
      this.#hasExpired ? `${what} has expired, so clients refuse it: renew it` : undefined,
    ]);
  }

  get #hasExpired(): boolean {
    return this.#certificate.validTo.getTime() <= Date.now();
  }

  #warnOfExpiry(): void {
    const { validTo } = this.#certificate;
    if (!this.#hasExpired || this.#expired === this.#certificate) return;
    this.#expired = this.#certificate;
    const { files, logger, protocol } = this.#options;
    logger.warn(`${protocol} certificate has expired; clients refuse it`, { file: files.certificateFile, validTo });
  }
}

/** The TLS options for a certificate. Forbids renegotiation, which costs the server many times what it costs the client. */
function toContext({ cert, key, clientCa }: Certificate): SecureContextOptions {
  const ca = clientCa === undefined ? {} : { ca: clientCa };
  return { cert, key, ...ca, ciphers, minVersion: "TLSv1.2", secureOptions: constants.SSL_OP_NO_RENEGOTIATION };
}

function isSame(left: Certificate, right: Certificate): boolean {
  const isSameCa = left.clientCa === undefined || (right.clientCa?.equals(left.clientCa) ?? false);
  return isSameCa && left.cert.equals(right.cert) && left.key.equals(right.key);
}
