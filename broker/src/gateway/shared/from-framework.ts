import { parameterError } from "./failure.ts";

/** An error of Fastify's own as one of the catalogue where the request is at fault; any other error as it is. */
export function fromFramework(error: unknown): unknown {
  if (!(error instanceof Error) || !("statusCode" in error) || !("code" in error)) return error;
  const isRequestsFault = typeof error.statusCode === "number" && error.statusCode < 500;
  return isRequestsFault ? parameterError(error.message, error) : error;
}
