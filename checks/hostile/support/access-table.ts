import { type CredentialName, credentialNames } from "./access-world.ts";

/**
 * For each credential, the error code with which the broker refuses it every call that the credential `client` may make. Undefined if the broker serves some of
 * these calls.
 */
export const codes: Readonly<Record<CredentialName, number | undefined>> = {
  none: 100_701,
  wrong: 100_701,
  forged: 100_701,
  expired: 100_701,
  revoked: 100_701,
  weak: 100_702,
  elsewhere: 100_702,
  client: undefined,
  admin: undefined,
  bounded: undefined,
  limited: undefined,
  publisher: undefined,
  "token forged": 100_701,
  "token expired": 100_701,
  "token of a removed key": 100_701,
  "token of another audience": 100_701,
  "token with the public key as a secret": 100_701,
  "token without a signature": 100_701,
  "token weak": 100_702,
  "token elsewhere": 100_702,
  "token client": undefined,
  "token admin": undefined,
};
export const invalid = credentialNames.filter((name) => codes[name] === 100_701);
export const insufficient = ["weak", "elsewhere", "token weak", "token elsewhere"] as const;
export const clients = ["client", "token client"] as const;
export const refused = credentialNames.filter((name) => codes[name] !== undefined);
