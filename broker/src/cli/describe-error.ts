import { SteleError } from "@stele/client";

/** Describes an error in one line for people, with its code and its hints. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (!(error instanceof SteleError)) return error.message;
  const code = error.code === undefined ? "" : ` (${error.code})`;
  return [`${error.message}${code}`, ...error.hints].join("; ");
}
