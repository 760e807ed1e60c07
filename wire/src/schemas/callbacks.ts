import type * as z from "zod";
import { cloudEventBatchSchema, cloudEventPingSchema, cloudEventSchema } from "./cloud-event.ts";
import { type JsonSchema, listProperties, toJsonSchema } from "./json-schema.ts";
import { callbackHeadersSchema, notificationBatchSchema, notificationSchema, pingSchema } from "./notifications.ts";

/** Bodies of callbacks that a client of REST gets, by their names among the components. */
export const callbackComponents = [
  [notificationSchema, "Notification"],
  [notificationBatchSchema, "NotificationBatch"],
  [pingSchema, "Ping"],
  [cloudEventSchema, "CloudEvent"],
  [cloudEventBatchSchema, "CloudEventBatch"],
  [cloudEventPingSchema, "CloudEventPing"],
] as const satisfies readonly (readonly [z.ZodType, string])[];

export interface CallbackOptions {
  readonly operationId: string;
  /** Where the call contains the callback address, as a runtime expression (OpenAPI 3.1, section 4.8.20.4). */
  readonly url: string;
  readonly toReference: (schema: z.ZodType) => JsonSchema;
}

/** The member `callbacks` of subscribe: what the broker sends to the address. */
export function toCallbacks({ operationId, url, toReference }: CallbackOptions): JsonSchema {
  const oneOf = (...schemas: readonly z.ZodType[]) => ({ schema: { oneOf: schemas.map(toReference) } });
  const post = {
    operationId,
    summary: "Delivers events, or asks for consent; see docs/callbacks.md.",
    tags: ["callbacks"],
    parameters: listProperties(callbackHeadersSchema).map(({ name, schema, description, isRequired }) => ({
      name,
      in: "header",
      required: isRequired,
      description,
      schema: toJsonSchema(schema),
    })),
    requestBody: {
      required: true,
      content: {
        "application/json": oneOf(notificationSchema, notificationBatchSchema, pingSchema),
        "application/cloudevents+json": oneOf(cloudEventSchema, cloudEventPingSchema),
        "application/cloudevents-batch+json": { schema: toReference(cloudEventBatchSchema) },
        "*/*": { schema: {} },
      },
    },
    responses: {
      "2XX": { description: "Accepted; the body does not matter." },
      410: { description: "The subscription is over: the broker suspends it." },
      default: { description: "Failed: the broker tries again, and honours Retry-After." },
    },
  };
  return { callback: { [url]: { post } } };
}
