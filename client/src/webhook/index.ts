export {
  type FastifyLike,
  type NodeResponse,
  toFetchHandler,
  toHonoHandler,
  toNodeHandler,
  webhookPlugin,
} from "./handlers.ts";
export type { NodeRequest } from "./read-body.ts";
export type { Webhook } from "./read-webhook.ts";
export type { ReceiverOptions } from "./receiver.ts";
export {
  verifySignature,
  verifyWebhook,
  type VerifyWebhookOptions,
  type WebhookHeaders,
  type WebhookSecret,
} from "./verify-webhook.ts";
export { WebhookRefused } from "./webhook-refused.ts";
