/** Bytes that are not a batch as `encodeEvents` writes it. The only error that reading a batch throws. */
export class MalformedBatchError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "MalformedBatchError";
  }
}
