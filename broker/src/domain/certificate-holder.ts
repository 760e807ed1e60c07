/** Who shows a client certificate. */
export interface CertificateHolder {
  /** An alternative name of the certificate with its kind, such as `DNS:shop.example`. */
  readonly name: string;
  readonly principal: string;
  /** Undefined for somebody who belongs to no tenant. */
  readonly tenant?: string | undefined;
  readonly roles: readonly string[];
}
