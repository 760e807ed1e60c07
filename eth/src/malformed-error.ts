/** Bytes are not in the form that they should have. Reading bytes from outside throws no other error. */
export class MalformedError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "MalformedError";
  }
}
