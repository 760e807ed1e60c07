/** The principal that a client certificate stands for. */
export interface CertificateHolder {
  /** A subject alternative name with its kind, such as `DNS:shop.example`. */
  readonly name: string;
  readonly principal: string;
  /** Undefined for a principal without a tenant. */
  readonly tenant?: string | undefined;
  readonly roles: readonly string[];
}
