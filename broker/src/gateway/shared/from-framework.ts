import { parameterError } from "./failure.ts";

const mediaTypeAdvice = "the content-type header is not a media type such as application/json";

/** Converts Fastify's error about a bad request to 200001; returns any other error unchanged. */
export function fromFramework(error: unknown): unknown {
  if (!(error instanceof Error) || !("statusCode" in error) || !("code" in error)) return error;
  const isRequestsFault = typeof error.statusCode === "number" && error.statusCode < 500;
  if (!isRequestsFault) return error;
  // Fastify says "Unsupported Media Type", which does not name the header.
  const details = error.code === "FST_ERR_CTP_INVALID_MEDIA_TYPE" ? mediaTypeAdvice : error.message;
  return parameterError(details, error);
}
