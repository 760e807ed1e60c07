/** The bytes are not a batch as `encodeEvents` writes it. Reading a batch throws no other error. */
export class MalformedBatchError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "MalformedBatchError";
  }
}
