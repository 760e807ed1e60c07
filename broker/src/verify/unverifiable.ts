/** Why nothing could be verified: the command was misused, or somebody who has to be asked gives no answer. Exit code 2. */
export class Unverifiable extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "Unverifiable";
  }
}

/** An answer was longer than is read. */
export class AnswerTooLong extends Unverifiable {}

/** What is wrong in an error, for people, with what caused it. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}
