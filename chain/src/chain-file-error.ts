/** Says why a chain could not start on its file. */
export class ChainFileError extends Error {
  constructor(message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "ChainFileError";
  }
}
