import { errors } from "undici";
import { describeNetworkFailure } from "../../lib/network-failure.ts";
import { AttemptError } from "./attempt-error.ts";

/** A failed connection, request or answer in words. Of a foreign error only its code is told, which holds nothing of the receiver's. */
export function describeFailure(error: Error): string {
  if (error instanceof AttemptError) return error.message;
  return error instanceof errors.HTTPParserError ? "the answer is not HTTP" : describeNetworkFailure(error);
}
