/** A client breaks the protocol, or sends nothing when something is due. Its connection ends. */
export class FrameError extends Error {
  override readonly name = "FrameError";
  /** The `receipt-id` of the ERROR: the receipt that the broken frame asks for, if it is known. */
  readonly receipt: string | undefined;

  constructor(message: string, receipt?: string) {
    super(message);
    this.receipt = receipt;
  }
}
