/** The callback is not one of the broker, or too old. Answer with status 401. */
export class WebhookRefused extends Error {
  constructor(message: string) {
    super(message);
    this.name = "WebhookRefused";
  }
}
