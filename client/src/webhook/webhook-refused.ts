/** The request is not a valid callback: its signature is missing or wrong, its time is too far from now, or its body is malformed. Answer with status 401. */
export class WebhookRefused extends Error {
  constructor(message: string) {
    super(message);
    this.name = "WebhookRefused";
  }
}
