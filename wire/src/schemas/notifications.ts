import * as z from "zod";
import { eventSchema } from "./results.ts";

const subscriptionId = z.string().describe("The subscription.");
const pingId = z.string().meta({ pattern: "^ping-" }).describe("The same as `webhook-id`.");

/** Body of a callback: the subscription's identifier, and the event. */
export const notificationSchema = z
  .strictObject({ subscriptionId, event: eventSchema })
  .meta({ title: "Notification" });
export type Notification = z.output<typeof notificationSchema>;

/** Body of a callback to a subscription with batches. */
export const notificationBatchSchema = z
  .strictObject({ subscriptionId, events: z.array(eventSchema).min(1) })
  .meta({ title: "NotificationBatch" });

/** Body of a ping, by which the broker asks a receiver for consent, or an operator tests it: topic, content and eventId are blank. */
export const pingSchema = z.strictObject({ subscriptionId, ping: pingId, event: eventSchema }).meta({ title: "Ping" });

/** The JSON-RPC method of a JsonRPC callback. */
export const notificationMethod = "onEvent";

const call = { jsonrpc: z.literal("2.0"), id: z.string().describe("The same as `webhook-id`.") };

/** Body of a JsonRPC callback: a JSON-RPC 2.0 request. */
export const rpcNotificationSchema = z
  .strictObject({ ...call, method: z.literal(notificationMethod), params: notificationSchema })
  .meta({ title: "RpcNotification" });
export type RpcNotification = z.output<typeof rpcNotificationSchema>;

/** Body of a JsonRPC callback to a subscription with batches. */
export const rpcNotificationBatchSchema = z
  .strictObject({ ...call, method: z.literal("onEvents"), params: notificationBatchSchema })
  .meta({ title: "RpcNotificationBatch" });

/** Body of a ping in the JsonRPC form. */
export const rpcPingSchema = z
  .strictObject({ ...call, id: pingId, method: z.literal("ping"), params: z.strictObject({ subscriptionId }) })
  .meta({ title: "RpcPing" });

/** Headers of every callback and ping (Standard Webhooks 1.0); HTTP adds its own. */
export const callbackHeadersSchema = z.object({
  "webhook-id": z
    .string()
    .describe(
      "The eventId; for a batch, its first eventId, `-batch-`, the number of events, `-` and a digest of the eventIds. A repeat has the same value.",
    ),
  "webhook-timestamp": z
    .string()
    .meta({ pattern: "^[0-9]+$" })
    .describe("Time of the attempt, in seconds since the epoch."),
  "webhook-signature": z
    .string()
    .meta({ pattern: "^v1a?,[^ ]+( v1a?,[^ ]+)*$" })
    .optional()
    .describe("Signatures of identifier, timestamp and body; only if the subscription has a secret."),
  "user-agent": z.string().meta({ pattern: "^stele/" }).describe("The broker and its version."),
  traceparent: z.string().optional().describe("W3C trace of the event, where it has one; a batch has none."),
});
