import type { BrokerError } from "@stele/wire";
import type { ClientCertificate } from "./credential.ts";
import type { RuleSet } from "./rule-set.ts";

/** The id of a principal, stored with everything that it owns. */
export type Owner = string & { readonly __brand: "Owner" };

/** Somebody who gave no credential. */
export interface Anonymous {
  readonly kind: "anonymous";
}

/** Somebody whose credential this broker does not accept. */
export interface Rejected {
  readonly kind: "rejected";
  readonly reason: string;
  /** The error to answer if the credential could not be checked. */
  readonly error?: BrokerError | undefined;
  /** Whether to end the connection without an answer. */
  readonly isClosed?: boolean | undefined;
}

/** The issuer of a token, and the key that signed it. */
export interface TokenMark {
  readonly issuer: string;
  readonly signer: string;
}

/** Somebody whose credential was valid when it was given. The policy knows whether it still is. */
export interface Known {
  readonly kind: "known";
  /** Unique among all principals: `tenant/name`, or the name alone without a tenant. */
  readonly id: Owner;
  readonly tenant: string | undefined;
  readonly rules: RuleSet;
  /** Milliseconds since the epoch; undefined for never. */
  readonly expiresAt: number | undefined;
  /** The key that the caller gave; undefined for a token, and for a principal that `Policy.recall` found. */
  readonly keyId: string | undefined;
  /** The token that the caller gave, if any. Then the principal has only the rights of this token. */
  readonly token?: TokenMark | undefined;
}

/** Owners whose rights may have changed; "all" if the keys of a token issuer have changed. */
export type ChangedOwners = ReadonlySet<Owner> | "all";

export type Principal = Anonymous | Rejected | Known;

export const anonymous: Anonymous = { kind: "anonymous" };

/** Owner of everything that was created without a credential. No known principal has this id. */
export const nobody = "anonymous" as Owner; // An id without a tenant; no principal can have this name.

export function toOwnerId(name: string, tenant: string | undefined): Owner {
  return (tenant === undefined ? name : `${tenant}/${name}`) as Owner; // The one function that composes an owner.
}

export function ownerOf(principal: Principal): Owner {
  return principal.kind === "known" ? principal.id : nobody;
}

/** How a call reached the broker. */
export type Protocol = "REST" | "JSON-RPC" | "MQTT" | "STOMP" | "admin" | "chain" | "tail";

/** Who calls, and from where. A listener creates a caller for each connection and principal, not for each call. */
export interface Caller {
  readonly principal: Principal;
  /** IP address of the peer as the listener sees it. Behind a proxy, it is the proxy's address. Undefined if the connection has ended. */
  readonly address: string | undefined;
  readonly protocol: Protocol;
  /** The certificate that the client presented over TLS; undefined for none. */
  readonly certificate?: ClientCertificate | undefined;
  /** Aborts when the connection has ended, so that nobody reads an answer. */
  readonly signal: AbortSignal;
}
