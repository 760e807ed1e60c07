import {
  cloudEventBatchSchema,
  cloudEventHeadersSchema,
  cloudEventPingSchema,
  cloudEventSchema,
} from "../cloud-event.ts";
import {
  callbackHeadersSchema,
  notificationBatchSchema,
  notificationSchema,
  pingSchema,
  rpcNotificationBatchSchema,
  rpcNotificationSchema,
  rpcPingSchema,
} from "../notifications.ts";
import { anyBytes, type AsyncMessage, type AsyncPart } from "./async-document.ts";

const headers = callbackHeadersSchema;
const json = { contentType: "application/json", headers };
const structured = { contentType: "application/cloudevents+json", headers };
const event = "An event.";
const batch = "Events of a subscription with `batch`.";
const ping = "A question for consent, or an operator's test; it is not an event.";

const restMessages = {
  notification: { ...json, summary: event, payload: notificationSchema },
  notificationBatch: { ...json, summary: batch, payload: notificationBatchSchema },
  ping: { ...json, summary: ping, payload: pingSchema },
} as const satisfies Record<string, AsyncMessage>;

const rpcMessages = {
  rpcNotification: { ...json, summary: event, payload: rpcNotificationSchema },
  rpcNotificationBatch: { ...json, summary: batch, payload: rpcNotificationBatchSchema },
  rpcPing: { ...json, summary: ping, payload: rpcPingSchema },
} as const satisfies Record<string, AsyncMessage>;

const cloudEventMessages = {
  cloudEvent: { ...structured, summary: event, payload: cloudEventSchema },
  cloudEventBatch: {
    headers,
    contentType: "application/cloudevents-batch+json",
    summary: batch,
    payload: cloudEventBatchSchema,
  },
  cloudEventPing: { ...structured, summary: ping, payload: cloudEventPingSchema },
  cloudEventBinary: {
    summary: "An event in binary mode: attributes in headers, the content as the body, with the type of the content.",
    contentType: "application/octet-stream",
    payload: anyBytes,
    headers: headers.extend(cloudEventHeadersSchema.shape),
  },
} as const satisfies Record<string, AsyncMessage>;

const post = { http: { method: "POST", bindingVersion: "0.3.0" } };
const place = "The url that subscribe was called with. A 2xx answer accepts; see docs/callbacks.md.";

/** Webhooks: the broker calls receivers in the form that their subscription asks for. */
export const callbackPart: AsyncPart = {
  kind: "receiver",
  channels: {
    restCallback: toChannel("Callbacks of subscriptions made over REST", Object.keys(restMessages)),
    rpcCallback: toChannel("Callbacks of subscriptions made over JSON-RPC", Object.keys(rpcMessages)),
    cloudEventCallback: toChannel(
      "Callbacks of subscriptions that ask for CloudEvents",
      Object.keys(cloudEventMessages),
    ),
  },
  operations: {
    notify: toCall("restCallback", "Delivers events in the RESTful form.", Object.keys(restMessages)),
    notifyRpc: toCall("rpcCallback", "Delivers events as JSON-RPC requests.", Object.keys(rpcMessages)),
    notifyCloudEvent: toCall("cloudEventCallback", "Delivers CloudEvents.", Object.keys(cloudEventMessages)),
  },
  messages: { ...restMessages, ...rpcMessages, ...cloudEventMessages },
};

function toChannel(title: string, messages: readonly string[]) {
  return { address: null, title, description: place, messages };
}

function toCall(channel: string, summary: string, messages: readonly string[]) {
  return { action: "send", channel, messages, summary, bindings: post } as const;
}
