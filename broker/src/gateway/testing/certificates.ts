import { execFileSync } from "node:child_process";
import type { CertificateFiles } from "../shared/connection/tls/certificate.ts";

const form = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];

/** Writes a self-signed certificate of localhost, and its key. */
export function createCertificate({ certificateFile, keyFile }: CertificateFiles, name: string): void {
  const names = ["-subj", `/CN=${name}`, "-addext", "subjectAltName=DNS:localhost,URI:stele:test"];
  execFileSync("openssl", [...form, "-keyout", keyFile, "-out", certificateFile, ...names], { stdio: "ignore" });
}
