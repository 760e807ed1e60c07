/** The chain's file cannot be used, or a part of it is damaged; the message says why. */
export class ChainFileError extends Error {
  constructor(message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "ChainFileError";
  }
}
