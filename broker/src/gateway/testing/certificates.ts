import { execFileSync } from "node:child_process";
import type { CertificateFiles } from "../shared/connection/tls/certificate.ts";

const request = ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

/** Writes a self-signed certificate of localhost, and its key. */
export function createCertificate({ certificateFile, keyFile }: CertificateFiles, name: string): void {
  const names = ["-subj", `/CN=${name}`, "-addext", "subjectAltName=DNS:localhost,URI:stele:test"];
  const form = [...request, "-x509", "-days", "2"];
  execFileSync("openssl", [...form, "-keyout", keyFile, "-out", certificateFile, ...names], { stdio: "ignore" });
}

/** Writes a self-signed certificate that expired as it was made, and its key. */
export function createExpiredCertificate({ certificateFile, keyFile }: CertificateFiles): void {
  const form = [...request, "-subj", "/CN=localhost", "-keyout", keyFile];
  const input = execFileSync("openssl", form, { stdio: ["ignore", "pipe", "ignore"] });
  const signing = ["x509", "-req", "-days", "0", "-signkey", keyFile, "-out", certificateFile];
  execFileSync("openssl", signing, { input, stdio: ["pipe", "ignore", "ignore"] });
}
