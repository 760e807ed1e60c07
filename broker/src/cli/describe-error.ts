import { SteleError } from "@stele/client";

/** An error in one line for people, with its code and with what to do. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (!(error instanceof SteleError)) return error.message;
  const code = error.code === undefined ? "" : ` (${error.code})`;
  return [`${error.message}${code}`, ...error.hints].join("; ");
}
