/** Why nothing could be verified: wrong usage, no trusted registry, the wrong chain, or a server that does not answer. Exit code 2. */
export class Unverifiable extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "Unverifiable";
  }
}

/** An answer exceeded the size limit. */
export class AnswerTooLong extends Unverifiable {}

/** Describes an error and its cause, for people. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}
