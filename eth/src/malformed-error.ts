/** Bytes do not have the expected encoding. Code that parses bytes from outside throws no other error. */
export class MalformedError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "MalformedError";
  }
}
