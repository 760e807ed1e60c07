import type { BrokerError } from "@stele/wire";
import type { ClientCertificate } from "./credential.ts";
import type { RuleSet } from "./rule-set.ts";

/** Who stands behind a call, as text that is stored with what they own. */
export type Owner = string & { readonly __brand: "Owner" };

/** Somebody who gave no credential. */
export interface Anonymous {
  readonly kind: "anonymous";
}

/** Somebody whose credential is none of this broker's. */
export interface Rejected {
  readonly kind: "rejected";
  readonly reason: string;
  /** What to answer where it is not known whether the credential is right. */
  readonly error?: BrokerError | undefined;
  /** Whether its connection ends without an answer. */
  readonly isClosed?: boolean | undefined;
}

/** By which key of which issuer a token was signed. */
export interface TokenMark {
  readonly issuer: string;
  readonly signer: string;
}

/** Somebody whose credential was right when it was given. Whether it still is, and what it allows, the policy knows. */
export interface Known {
  readonly kind: "known";
  /** Unique among all principals: the tenant, where there is one, a slash, and the name. */
  readonly id: Owner;
  readonly tenant: string | undefined;
  readonly rules: RuleSet;
  /** Milliseconds since the epoch; undefined for never. */
  readonly expiresAt: number | undefined;
  /** The key that was given; undefined for one that is remembered by what it owns. */
  readonly keyId: string | undefined;
  /** Where a token was given. The rights are those of that token alone. */
  readonly token?: TokenMark | undefined;
}

/** Owners whose rights may have changed. */
export type ChangedOwners = ReadonlySet<Owner> | "all";

export type Principal = Anonymous | Rejected | Known;

export const anonymous: Anonymous = { kind: "anonymous" };

/** Owns what was made without a credential. No known principal has this id. */
export const nobody = "anonymous" as Owner; // Not a tenant's, and refused as a name.

export function toOwnerId(name: string, tenant: string | undefined): Owner {
  return (tenant === undefined ? name : `${tenant}/${name}`) as Owner; // What an owner is.
}

export function ownerOf(principal: Principal): Owner {
  return principal.kind === "known" ? principal.id : nobody;
}

/** How a call reached the broker. */
export type Protocol = "REST" | "JSON-RPC" | "MQTT" | "STOMP" | "admin" | "chain" | "tail";

/** Who calls, and from where. A listener makes one for each connection and principal, not for each call. */
export interface Caller {
  readonly principal: Principal;
  /** IP address of the peer, as the listener sees it: behind a proxy, the proxy's. Undefined when the connection ended first. */
  readonly address: string | undefined;
  readonly protocol: Protocol;
  /** What the client showed when it connected over TLS; undefined for none. */
  readonly certificate?: ClientCertificate | undefined;
  /** Aborts when the connection has ended, so that nobody reads an answer any more. */
  readonly signal: AbortSignal;
}
