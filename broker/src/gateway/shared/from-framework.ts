import { parameterError } from "./failure.ts";

/** Converts Fastify's error about a bad request to 200001; returns any other error unchanged. */
export function fromFramework(error: unknown): unknown {
  if (!(error instanceof Error) || !("statusCode" in error) || !("code" in error)) return error;
  const isRequestsFault = typeof error.statusCode === "number" && error.statusCode < 500;
  return isRequestsFault ? parameterError(error.message, error) : error;
}
