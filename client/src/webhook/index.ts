export {
  type FastifyLike,
  type NodeRequest,
  toFetchHandler,
  toHonoHandler,
  toNodeHandler,
  webhookPlugin,
} from "./handlers.ts";
export type { ReceiverOptions } from "./receiver.ts";
export {
  verifyWebhook,
  type VerifyWebhookOptions,
  type Webhook,
  type WebhookHeaders,
  WebhookRefused,
  type WebhookSecret,
} from "./verify-webhook.ts";
