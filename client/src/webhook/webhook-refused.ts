/** The request is not a valid callback: it has no valid signature, its time is too far from now, or its body is of another form. Answer with status 401. */
export class WebhookRefused extends Error {
  constructor(message: string) {
    super(message);
    this.name = "WebhookRefused";
  }
}
