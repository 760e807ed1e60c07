import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";

/** Paths of a certificate and of its key. */
export interface CertificateFile {
  readonly certificate: string;
  readonly key: string;
}

/** A certificate authority that keeps its files and the certificates that it signs in one folder. */
export class Authority {
  /** Path of the authority's own certificate. */
  readonly file: string;
  readonly #folder: string;
  readonly #name: string;

  constructor(folder: string, name: string) {
    [this.#folder, this.#name] = [folder, name];
    this.file = join(folder, `${name}.pem`);
    openssl("req", "-x509", ...newKey, "-days", "2", "-keyout", this.#key, "-out", this.file, "-subj", `/CN=${name}`);
  }

  /**
   * Makes a key and signs a certificate for it, with the common name `name`. `alternatives` is the subjectAltName, such as
   * `DNS:localhost,URI:urn:a`. A negative `validDays` gives an expired certificate.
   */
  sign(name: string, alternatives: string, validDays = 1): CertificateFile {
    const file = (ending: string) => join(this.#folder, `${name}.${ending}`);
    const signed = { certificate: file("pem"), key: file("key") };
    openssl("req", ...newKey, "-keyout", signed.key, "-out", file("csr"), "-subj", `/CN=${name}`);
    writeFileSync(file("ext"), `subjectAltName=${alternatives}\n`);
    const ca = ["-CA", this.file, "-CAkey", this.#key, "-days", String(validDays)];
    openssl("x509", "-req", "-in", file("csr"), ...ca, "-extfile", file("ext"), "-out", signed.certificate);
    return signed;
  }

  get #key(): string {
    return join(this.#folder, `${this.#name}.key`);
  }
}

const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

function openssl(...words: readonly string[]): void {
  execFileSync("openssl", words, { stdio: "ignore" });
}
