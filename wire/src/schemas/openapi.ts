import type * as z from "zod";
import { callbackComponents, type CallbackOptions, toCallbacks } from "./callbacks.ts";
import { type JsonSchema, listProperties, toJsonSchema, toNonNullSchema } from "./json-schema.ts";
import { proofSchema } from "../proof/proof-schema.ts";
import { type Operation, operationNames, operations, restPathOf, secretHeader } from "./operations.ts";
import {
  brokerExceptionSchema,
  eventSchema,
  sendResultSchema,
  skippedListingSchema,
  subscriptionListingSchema,
  topicInfoSchema,
  topicPageSchema,
  topicStateSchema,
} from "./results.ts";
import { toTailPath } from "./tail-path.ts";

/** Facts about the server that serves a document. */
export interface DocumentOptions {
  readonly version: string;
  /** Prefix of every path, without a trailing slash; empty for none. */
  readonly basePath: string;
  readonly extensionPrefix: string;
}

const components = new Map<z.ZodType, string>([
  [sendResultSchema, "SendResult"],
  [eventSchema, "Event"],
  [proofSchema, "Proof"],
  [topicInfoSchema, "TopicInfo"],
  [topicStateSchema, "TopicState"],
  [topicPageSchema, "TopicPage"],
  [subscriptionListingSchema, "SubscriptionListing"],
  [skippedListingSchema, "SkippedListing"],
  [brokerExceptionSchema, "BrokerException"],
  ...callbackComponents,
]);

/** The OpenAPI 3.1 document of REST, tails, and the paths for listings, health and metrics. The schemas of REST also validate its requests. */
export function toOpenApi(options: DocumentOptions) {
  return {
    openapi: "3.1.0",
    info: {
      title: "Stele",
      version: options.version,
      description:
        "Event broker: topics, publishing and subscriptions. Every operation under /rest answers with HTTP status 200; a failure is a BrokerException. Only a publish of CloudEvents, see docs/rest.md, gets the status of its outcome. A caller that is not allowed to call, such as a foreign web page, gets 403 with error 100703, and a request with a wrong number of Host headers gets 400 with error 200001.",
    },
    servers: [{ url: options.basePath === "" ? "/" : options.basePath }],
    paths: {
      ...Object.fromEntries(operationNames.map((name) => [restPathOf(name), toRestPath(name, options)])),
      "/tail": toTailPath(toReference(brokerExceptionSchema)),
      ...adminPaths,
    },
    components: {
      schemas: Object.fromEntries([...components].map(([schema, name]) => [name, toJsonSchema(schema)])),
    },
  };
}

function toRestPath(name: (typeof operationNames)[number], options: DocumentOptions) {
  const operation: Operation = operations[name];
  const common = { summary: operation.summary, tags: ["rest"], responses: { 200: toAnswer(operation.result, name) } };
  return {
    get: {
      operationId: name,
      ...common,
      parameters: toQueryParameters(operation, options),
      ...toCallbacksOf(name, { operationId: "callback", url: "{$request.query.url}" }),
    },
    post: {
      operationId: `${name}ByPost`,
      ...common,
      ...toPostParameters(operation),
      requestBody: toRequestBody(operation, options),
      ...toCallbacksOf(name, { operationId: "callbackByPost", url: "{$request.body#/url}" }),
    },
  };
}

function toCallbacksOf(name: string, options: Omit<CallbackOptions, "toReference">) {
  return name === "subscribe" ? { callbacks: toCallbacks({ ...options, toReference }) } : {};
}

function toQueryParameters(operation: Operation, options: DocumentOptions): readonly JsonSchema[] {
  const named = listProperties(operation.restParams).map(({ name, schema, description, isRequired }) => ({
    name,
    in: "query",
    required: isRequired,
    description,
    schema: toNonNullSchema(schema),
  }));
  if (!operation.hasExtensions) return named;
  const headers = toHeaderParameters(operation);
  const extensions = {
    name: "extensions",
    in: "query",
    description: `Extension data: one parameter per key; each name starts with the prefix ${options.extensionPrefix}.`,
    style: "form",
    explode: true,
    schema: { type: "object", patternProperties: toExtensionPattern(options), additionalProperties: false },
  };
  return [...named, extensions, ...headers];
}

function toPostParameters(operation: Operation): { readonly parameters?: readonly JsonSchema[] } {
  const parameters = toHeaderParameters(operation);
  return parameters.length === 0 ? {} : { parameters };
}

function toHeaderParameters({ restHeaders }: Operation): readonly JsonSchema[] {
  if (restHeaders === undefined) return [];
  return listProperties(restHeaders).map(({ name, schema, description, isRequired }) => ({
    name,
    in: "header",
    required: isRequired,
    description,
    schema: toNonNullSchema(schema),
  }));
}

/** The body of a POST. Its members may instead be query parameters; each may appear in only one of the two places. */
function toRequestBody(operation: Operation, options: DocumentOptions) {
  const properties = listProperties(operation.restParams);
  const form = {
    type: "object",
    properties: Object.fromEntries(properties.map((property) => [property.name, toNonNullSchema(property.schema)])),
    required: properties.filter(({ isRequired }) => isRequired).map(({ name }) => name),
    ...(operation.hasExtensions ? { patternProperties: toExtensionPattern(options) } : {}),
  };
  const json = {
    ...form,
    properties: { ...form.properties, ...(operation.hasExtensions ? { extensions: toExtensionsObject(options) } : {}) },
    additionalProperties: false,
  };
  // JSON first: openapi-generator takes the first media type, and a form cannot carry the extensions as one property.
  return {
    content: { "application/json": { schema: json }, "application/x-www-form-urlencoded": { schema: form } },
  };
}

function toExtensionsObject({ extensionPrefix }: DocumentOptions): JsonSchema {
  return {
    type: "object",
    description: `Extension data by key; each key starts with the prefix ${extensionPrefix}.`,
    additionalProperties: { type: "string" },
  };
}

function toExtensionPattern({ extensionPrefix }: DocumentOptions): JsonSchema {
  return { [`^${extensionPrefix.replaceAll(/[^A-Za-z0-9_-]/g, "\\$&")}`]: { type: "string" } };
}

function toAnswer(result: z.ZodType, name: string) {
  const json = { schema: { oneOf: [toReference(result), toReference(brokerExceptionSchema)] } };
  const text = name === "subscribe" ? { "text/plain": { schema: { type: "string" } } } : {};
  return {
    description: "The result, or a BrokerException.",
    headers: {
      "stele-error-retry": {
        description: "With a BrokerException: whether the same call can succeed later.",
        schema: { type: "string", enum: ["true", "false"] },
      },
      "retry-after": {
        description: "With a BrokerException: seconds after which the same call can succeed, if the broker knows.",
        schema: { type: "string", pattern: "^[0-9]+$" },
      },
      ...(name === "subscribe" && { [secretHeader]: madeSecret }),
    },
    content: { "application/json": json, ...text },
  };
}

const madeSecret = {
  description: "The secret that the broker made, if the call asked for one. Nothing else ever shows it.",
  schema: { type: "string" },
};

function toReference(schema: z.ZodType): JsonSchema {
  const name = components.get(schema);
  return name === undefined ? toJsonSchema(schema) : { $ref: `#/components/schemas/${name}` };
}

const toGet = (operationId: string, summary: string, responses: JsonSchema) => ({
  get: { operationId, summary, tags: ["admin"], responses },
});

const toJsonResponse = (description: string, schema: JsonSchema) => ({
  description,
  content: { "application/json": { schema } },
});

const readinessSchema = {
  type: "object",
  description: "Only `status` where access control is on and the caller is not an admin.",
  required: ["status"],
  properties: {
    status: { type: "string", enum: ["ready", "partly ready", "not ready", "closing"] },
    node: {
      type: "object",
      description: "Absent for a single node.",
      required: ["address", "isMember"],
      properties: { address: { type: "string" }, isMember: { type: "boolean" }, reason: { type: "string" } },
    },
    listeners: {
      type: "array",
      items: {
        type: "object",
        required: ["name", "address"],
        properties: { name: { type: "string" }, address: { type: "string" } },
      },
    },
    groups: {
      type: "array",
      items: {
        type: "object",
        required: ["groupId", "ready", "indexedBlock"],
        properties: {
          groupId: { type: "string" },
          ready: { type: "boolean" },
          reason: { type: "string" },
          warning: { type: "string" },
          transactionFailure: { type: "string" },
          role: { type: "string", enum: ["follows", "watches"] },
          subscriptions: { type: "integer" },
          held: { type: "object" },
          lag: { type: "object" },
          indexedBlock: { type: "integer" },
          headBlock: { type: "integer" },
          chain: { type: "object" },
        },
      },
    },
  },
};

const anyObject = { type: "object" };

const accessSchema = {
  type: "object",
  required: ["actions", "serves"],
  properties: {
    principal: { type: "string", description: "Absent if nobody has to log in." },
    expiresAt: { type: "string", format: "date-time", description: "When the credential expires; absent if never." },
    actions: { type: "array", items: { type: "string" }, description: "As in the rules of docs/access.md." },
    serves: {
      type: "array",
      items: { type: "string", enum: ["clients", "operators"] },
      description: "Whose calls this port serves.",
    },
  },
};

const adminPaths = {
  "/admin/listSubscription": toGet("listSubscription", "Every subscription, by node and identifier.", {
    200: toAnswer(subscriptionListingSchema, "listSubscription"),
  }),
  "/admin/skippedEntries": {
    get: {
      ...toGet("skippedEntries", "Entries on the chain that the group's index skipped, newest first.", {
        200: toAnswer(skippedListingSchema, "skippedEntries"),
      }).get,
      parameters: [
        { name: "groupId", in: "query", required: false, schema: { type: "string" } },
        { name: "limit", in: "query", required: false, schema: { type: "integer", minimum: 1, default: 100 } },
      ],
    },
  },
  "/health/live": toGet("live", "Whether the process is alive.", {
    200: toJsonResponse("The process is alive.", anyObject),
  }),
  "/health/ready": {
    get: {
      ...toGet("ready", "Whether the groups can serve; with groupId, whether that group can.", {
        200: toJsonResponse(
          "At least one group can serve; the answer gives the reason for those that cannot.",
          readinessSchema,
        ),
        401: toJsonResponse("With groupId, where access control is on: the credential is missing or wrong.", anyObject),
        403: toJsonResponse(
          "With groupId, where access control is on: the caller has no right in that group.",
          anyObject,
        ),
        404: toJsonResponse("There is no such group.", anyObject),
        503: toJsonResponse("No group can serve, or the server is shutting down.", readinessSchema),
      }).get,
      parameters: [{ name: "groupId", in: "query", required: false, schema: { type: "string" } }],
    },
  },
  "/access": toGet("access", "Who the caller is, and what it may do.", {
    200: toJsonResponse("The caller's rights; each may cover only some topics.", accessSchema),
    401: toJsonResponse("The credential is missing or wrong.", anyObject),
    503: toJsonResponse("The broker cannot identify the caller at the moment.", anyObject),
  }),
  "/metrics": toGet("metrics", "Metrics in the Prometheus text format.", {
    200: { description: "Metrics.", content: { "text/plain": { schema: { type: "string" } } } },
    401: toJsonResponse("Where access control is on: the credential is missing or wrong.", anyObject),
    403: toJsonResponse("Where access control is on: the caller is not an admin.", anyObject),
  }),
  "/openapi.json": toGet("openapi", "This document.", { 200: toJsonResponse("OpenAPI 3.1.", anyObject) }),
  "/asyncapi.json": toGet("asyncapi", "What the broker sends: callbacks, tails, MQTT and STOMP.", {
    200: toJsonResponse("AsyncAPI 3.0.", anyObject),
  }),
};
