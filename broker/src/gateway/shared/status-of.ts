import { type ErrorKind, errorCatalogue, toBrokerError } from "@stele/wire";

const statuses: Readonly<Record<ErrorKind, number>> = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  "not-found": 404,
  conflict: 409,
  exhausted: 503,
  unavailable: 503,
  internal: 500,
};

/** The HTTP status of a failure, for interfaces that report failures by status. */
export function statusOf(error: unknown): number {
  const { code, kind } = toBrokerError(error);
  return code === errorCatalogue.overQuota.code ? 429 : statuses[kind];
}
