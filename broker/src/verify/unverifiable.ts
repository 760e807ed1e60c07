/** Why nothing could be verified: wrong usage, no trusted registry, the wrong chain, or a server that does not answer. Exit code 2. */
export class Unverifiable extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "Unverifiable";
  }
}

/** An answer exceeded the size limit. */
export class AnswerTooLong extends Unverifiable {}

/** Describes an error and the innermost of its causes, for people: `fetch` says why it failed in a cause of its cause. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  let inner = error;
  while (inner.cause instanceof Error) inner = inner.cause;
  // If a name has several addresses, Node's error has a code and no message.
  const reason = inner.message === "" && "code" in inner ? String(inner.code) : inner.message;
  return inner === error ? reason : `${error.message}: ${reason}`;
}
