import * as z from "zod";
import type { ErrorName } from "../errors/catalogue.ts";
import { proofSchema } from "../proof/proof-schema.ts";
import { parameter } from "./parameters.ts";
import { eventSchema, sendResultSchema, topicPageSchema, topicStateSchema } from "./results.ts";

const { topic, topicFilter, groupId } = parameter;

/** Header of a REST publish that carries its key. */
export const idempotencyKeyHeader = "idempotency-key";

const always = [
  "parameterInvalid",
  "credentialRefused",
  "accessDenied",
  "unknown",
  "storeUnreachable",
  "busy",
] as const satisfies readonly ErrorName[];
const topicErrors = ["topicBlank", "topicTooLong", "topicInvalidCharacter"] as const satisfies readonly ErrorName[];
/** A group that has not reached its chain since the broker started answers no call. */
const groupErrors = ["groupInvalid", "groupUnknown", "chainUnreachable"] as const satisfies readonly ErrorName[];
const transactionErrors = ["transactionTimeout", "transactionFailed"] as const satisfies readonly ErrorName[];

/** One operation, the same on every transport. Positional calls pass parameters in this order. */
export interface Operation {
  readonly summary: string;
  /** Parameters by name, as JSON-RPC carries them. */
  readonly params: z.ZodObject;
  /** Parameters as REST carries them, without extension parameters. */
  readonly restParams: z.ZodObject;
  /** Whether REST accepts parameters that begin with the extension prefix. */
  readonly hasExtensions: boolean;
  /** Headers of a REST request that mean something to the operation, besides those that all share. */
  readonly restHeaders?: z.ZodObject;
  readonly result: z.ZodType;
  /** Errors that the operation can return. */
  readonly errors: readonly ErrorName[];
}

function define<Result extends z.ZodType>(
  summary: string,
  shape: {
    readonly params: z.ZodRawShape;
    readonly result: Result;
    readonly errors: readonly ErrorName[];
  },
) {
  const params = z.object(shape.params);
  return {
    summary,
    params,
    restParams: params,
    hasExtensions: false,
    result: shape.result,
    errors: [...always, ...shape.errors],
  };
}

const publish = {
  ...define("Publishes an event to a topic; answers after the event is on the chain.", {
    params: {
      topic,
      groupId,
      content: parameter.base64Content,
      extensions: parameter.extensions,
      idempotencyKey: parameter.idempotencyKey,
    },
    result: sendResultSchema,
    errors: [
      ...topicErrors,
      ...groupErrors,
      "topicNotExist",
      "topicClosed",
      "writerRefused",
      "publishKeyReused",
      "contentBlank",
      "contentTooLong",
      "extensionsTooLong",
      "extensionKeyInvalid",
      "indexDamaged",
      "eventUnavailable",
      "overQuota",
      ...transactionErrors,
    ],
  }),
  restParams: z.object({ topic, groupId, content: parameter.textContent }),
  hasExtensions: true,
  restHeaders: z.object({ [idempotencyKeyHeader]: parameter.idempotencyKey, traceparent: parameter.traceParent }),
};

/** Every operation of the interface by name. REST and JSON-RPC validate with it; the OpenAPI and OpenRPC documents are made from it. */
export const operations = {
  open: define("Opens a topic; also true if it is already open.", {
    params: { topic, groupId },
    result: z.boolean(),
    errors: [...topicErrors, ...groupErrors, "writerRefused", "overQuota", ...transactionErrors],
  }),
  close: define("Closes a topic: its events stay readable, but publishing to it fails.", {
    params: { topic, groupId },
    result: z.boolean(),
    errors: [...topicErrors, ...groupErrors, "topicNotExist", "writerRefused", ...transactionErrors],
  }),
  exist: define("Whether a topic exists, open or closed.", {
    params: { topic, groupId },
    result: z.boolean(),
    errors: [...topicErrors, ...groupErrors],
  }),
  publish,
  subscribe: define("Subscribes a callback address, or resumes an earlier subscription; returns its identifier.", {
    params: {
      topic: topicFilter,
      groupId,
      url: parameter.url,
      subscriptionId: parameter.optionalSubscriptionId,
      offset: parameter.offset,
      secret: parameter.secret,
      format: parameter.format,
      concurrency: parameter.concurrency,
      batch: parameter.batch,
      batchMs: parameter.batchMs,
      onFailure: parameter.onFailure,
      attemptsMax: parameter.attemptsMax,
    },
    result: z.string(),
    errors: [
      ...topicErrors,
      ...groupErrors,
      "topicPatternInvalid",
      "topicNotExist",
      "subscriptionElsewhere",
      "urlInvalid",
      "receiverNotAgreed",
      "subscriptionIdBlank",
      "subscriptionIdInvalid",
      "eventIdBlank",
      "eventIdTooLong",
      "eventIdIllegal",
      "eventNotExist",
      "eventBeyondHead",
      "indexDamaged",
      "eventUnavailable",
      "overQuota",
    ],
  }),
  unSubscribe: define("Removes a subscription.", {
    params: { subscriptionId: parameter.subscriptionId },
    result: z.boolean(),
    errors: ["subscriptionIdBlank", "subscriptionIdInvalid", "subscriptionNotExist", "noCoordinator"],
  }),
  getEvent: define("Gets an event by its identifier.", {
    params: { eventId: parameter.eventId, groupId },
    result: eventSchema,
    errors: [
      ...groupErrors,
      "eventIdBlank",
      "eventIdTooLong",
      "eventIdIllegal",
      "eventNotExist",
      "eventBeyondHead",
      "indexDamaged",
      "eventUnavailable",
    ],
  }),
  getProof: define("Returns a proof by the chain that an event was published; see docs/proofs.md.", {
    params: { eventId: parameter.eventId, groupId },
    result: proofSchema,
    errors: [
      ...groupErrors,
      "eventIdBlank",
      "eventIdTooLong",
      "eventIdIllegal",
      "eventNotExist",
      "eventBeyondHead",
      "proofUnavailable",
      "indexDamaged",
      "eventUnavailable",
    ],
  }),
  list: define("Lists topics by page, in the order in which they were opened.", {
    params: { pageIndex: parameter.pageIndex, pageSize: parameter.pageSize, groupId },
    result: topicPageSchema,
    errors: [...groupErrors, "pageIndexInvalid"],
  }),
  state: define("Shows a topic with the number of its events and its latest block.", {
    params: { topic, groupId },
    result: topicStateSchema,
    errors: [...topicErrors, ...groupErrors, "topicNotExist"],
  }),
} satisfies Record<string, Operation>;

/** Name of an operation: its JSON-RPC method. */
export type OperationName = keyof typeof operations;

/** Result type of an operation on REST; JSON-RPC writes booleans as strings. */
export type OperationResult<Name extends OperationName> = z.output<(typeof operations)[Name]["result"]>;

/** Every name, in the order of the interface. */
// The keys of a literal are its names.
export const operationNames = Object.keys(operations) as readonly OperationName[];

/** Operations whose REST path differs from their name. */
const restNames: Partial<Record<OperationName, string>> = { getProof: "proof" };

/** Header of a REST answer with the secret that the broker made for a subscription. */
export const secretHeader = "stele-secret";

/** Path of an operation on REST, without the base path: `/rest/<name>`, except for `/rest/proof`. */
export function restPathOf(name: OperationName): string {
  return `/rest/${restNames[name] ?? name}`;
}

/** Names of integer parameters. */
export function integerParameters(params: z.ZodObject): readonly string[] {
  return Object.entries(params.shape)
    .filter(([, schema]) => z.safeParse(schema, 0).success)
    .map(([name]) => name);
}
