/** The callback does not come from the broker, or is too old. Answer with status 401. */
export class WebhookRefused extends Error {
  constructor(message: string) {
    super(message);
    this.name = "WebhookRefused";
  }
}
