import { errors } from "undici";
import { describeNetworkFailure } from "../../lib/network-failure.ts";
import { AttemptError } from "./attempt-error.ts";

/** Describes a failed connection, request or answer. Of an unknown error it shows only the code, which contains no data from the receiver. */
export function describeFailure(error: Error): string {
  if (error instanceof AttemptError) return error.message;
  return error instanceof errors.HTTPParserError ? "the answer is not HTTP" : describeNetworkFailure(error);
}
