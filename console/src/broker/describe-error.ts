import { SteleError } from "@stele/client";

const accessDenied = 100702;
const parameterInvalid = 200001;

/** What went wrong, and what a person can do. */
export function describeError(error: unknown): string {
  if (!(error instanceof SteleError)) return error instanceof Error ? error.message : String(error);
  const { code, message, hints } = error;
  return [code === undefined ? message : `${message} (${code})`, ...hints, ...adviceFor(code, message)].join(" — ");
}

function adviceFor(code: number | undefined, message: string): readonly string[] {
  if (code === accessDenied) return ["your key lacks the right to do this; an operator can grant it"];
  if (code !== parameterInvalid || !message.includes("there is nothing at")) return [];
  return [
    message.includes("/admin/")
      ? "operators' pages may be served at another port (adminPort): open the console there"
      : "the calls of clients may be served at another port: open the console there",
  ];
}
