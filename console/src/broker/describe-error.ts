import { SteleError } from "@stele/client";

const accessDenied = 100702;
const parameterInvalid = 200001;

/** What went wrong, and what a person can do. */
export function describeError(error: unknown): string {
  if (!(error instanceof SteleError)) return error instanceof Error ? error.message : String(error);
  const { code, message, hints } = error;
  return [code === undefined ? message : `${message} (${code})`, ...hints, ...adviceFor(error)].join(" — ");
}

/** Whether a failed call may have taken effect. */
export function isUnknown(error: unknown): boolean {
  return error instanceof SteleError && !error.wasRefused;
}

/** Whether the key lacks the right to make the call. */
export function isDenied(error: unknown): boolean {
  return error instanceof SteleError && error.code === accessDenied;
}

/** Whether this port of the broker does not serve the call. */
export function isServedElsewhere(error: unknown): error is SteleError {
  return (
    error instanceof SteleError && error.code === parameterInvalid && error.message.includes("there is nothing at")
  );
}

function adviceFor(error: SteleError): readonly string[] {
  if (isDenied(error)) return ["your key lacks the right to do this; an operator can grant it"];
  if (!isServedElsewhere(error)) return [];
  return [
    error.message.includes("/admin/")
      ? "operators' pages may be served at another port (adminPort): open the console there"
      : "the calls of clients may be served at another port: open the console there",
  ];
}
