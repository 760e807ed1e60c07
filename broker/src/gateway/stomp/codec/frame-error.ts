/** The bytes of a client break the protocol. Its connection ends. */
export class FrameError extends Error {
  override readonly name = "FrameError";
  /** What the ERROR names as its `receipt-id`: the receipt that the broken frame asks for, as far as that is known. */
  readonly receipt: string | undefined;

  constructor(message: string, receipt?: string) {
    super(message);
    this.receipt = receipt;
  }
}
