import * as z from "zod";
import { eventSchema } from "./results.ts";

/** Body of a callback: the subscription's identifier, and the event. */
export const notificationSchema = z
  .strictObject({ subscriptionId: z.string(), event: eventSchema })
  .meta({ title: "Notification" });
export type Notification = z.output<typeof notificationSchema>;

/** Body of a callback to a subscription with batches. */
export const notificationBatchSchema = z
  .strictObject({ subscriptionId: z.string(), events: z.array(eventSchema).min(1) })
  .meta({ title: "NotificationBatch" });

/** The JSON-RPC method of a JsonRPC callback. */
export const notificationMethod = "onEvent";

/** Body of a JsonRPC callback: a JSON-RPC 2.0 request. */
export const rpcNotificationSchema = z
  .strictObject({
    jsonrpc: z.literal("2.0"),
    id: z.string(),
    method: z.literal(notificationMethod),
    params: notificationSchema,
  })
  .meta({ title: "RpcNotification" });
export type RpcNotification = z.output<typeof rpcNotificationSchema>;
