import { BrokerError, errorCatalogue, type ErrorName, isBrokerError, quote } from "@stele/wire";
import type { TenantNames } from "../../domain/tenant-names.ts";

/** A name in a call: `view` as its client wrote it, `real` as the broker has it. */
export interface Naming {
  readonly view: string;
  readonly real: string;
  /** Throws an error if the topic or filter is malformed; left out if the client wrote no topic or filter. */
  readonly check?: ((view: string) => unknown) | undefined;
}

/** Errors about the length or characters of a topic or filter. Their texts count and show the tenant's prefix too. */
const ofForm = ["topicTooLong", "topicBlank", "topicInvalidCharacter", "topicPatternInvalid"] as const;

const nameOfCode = new Map(
  Object.entries(errorCatalogue).map(([name, { code }]) => [code, name as ErrorName]), // The catalogue's own keys.
);

/** Returns an error with the names that the tenant's client wrote, without the tenant's prefix. */
export function inWordsOf(names: TenantNames, error: unknown, namings: readonly Naming[]): unknown {
  if (!(error instanceof BrokerError)) return error;
  const fault = ofForm.some((name) => isBrokerError(error, name)) ? findFault(names, namings) : undefined;
  if (fault !== undefined) return fault;
  return names.isNamedIn(error.message) ? reworded(names, error, namings) : error;
}

function findFault(names: TenantNames, namings: readonly Naming[]): unknown {
  for (const { view, check } of namings) {
    try {
      check?.(view);
      if (check !== undefined) names.checkLength(view);
    } catch (fault) {
      return fault;
    }
  }
  return undefined;
}

/** Leaves out details with names that the call did not contain. Leaves quota errors alone: the account that they name is not a topic. */
function reworded(names: TenantNames, error: BrokerError, namings: readonly Naming[]): BrokerError {
  const name = nameOfCode.get(error.code);
  if (name === undefined || name === "overQuota") return error;
  const real = error.message.slice(errorCatalogue[name].message.length).replace(/^: /, "");
  // The details name an earlier subscription of the caller.
  const details = name === "subscriptionElsewhere" ? names.stripFrom(real) : toViewText(names, real, namings);
  const { hints, retryAfterMs } = error;
  return new BrokerError(name, {
    ...(details === "" ? {} : { details }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    hints,
    cause: error,
  });
}

function toViewText(names: TenantNames, text: string, namings: readonly Naming[]): string {
  const longestFirst = namings.toSorted((one, other) => other.real.length - one.real.length);
  const called = longestFirst.reduce((left, { real, view }) => left.replaceAll(quote(real), () => quote(view)), text);
  const rest = namings.reduce((left, { view }) => left.replaceAll(quote(view), ""), called);
  return names.isNamedIn(rest) ? "" : called;
}
