import type { OperationName, OperationResult } from "@stele/wire";
import type { DeliveryOptionsCall } from "../../domain/delivery-options.ts";
import type { Extensions } from "../../domain/event.ts";
import type { WebhookFormat } from "../../domain/subscription.ts";
import type { Caller } from "../../engine/access/caller.ts";
import type { Broker, EventCall, PublishCall, TopicCall } from "../../engine/broker.ts";
import { toProof } from "../../engine/query/to-proof.ts";
import { toEventBody, toTopicPage, toTopicState } from "./results.ts";

/** The parameters of one call, independent of the protocol. Throws 200001 (for a page index: 100104) if a value is malformed, or needed and missing. */
export interface ParameterReader {
  text(name: string): string;
  optionalText(name: string): string | undefined;
  /** Undefined if left out. May return any number, even one that is not a valid page index. */
  pageIndex(): number | undefined;
  /** Undefined when left out. */
  integer(name: string): number | undefined;
  content(): Uint8Array;
  extensions(): Extensions;
  /** The key by which the broker recognises a repeated publish. */
  publishKey(): string | undefined;
}

/** The broker, the caller, and the callback format that belongs to the protocol. */
export interface OperationContext {
  readonly broker: Broker;
  readonly caller: Caller;
  readonly format: WebhookFormat;
  /** Called with the secret that the broker generated for a subscription; left out if the answer cannot carry it. */
  readonly onSecret?: (secret: string) => void;
}

/** Operations that return a promise. A publish is submitted instead, see {@link readPublishCall}. */
export type NonPublishOperation = Exclude<OperationName, "publish">;

type OperationHandler<Name extends NonPublishOperation> = (
  context: OperationContext,
  reader: ParameterReader,
) => Promise<OperationResult<Name>>;

// For a size outside 1…99 the engine uses its default.
const pageSizeLeftOut = 0;

/** The handler of each operation turns its parameters into a call and its result into the documented form. */
export const operationHandlers: { readonly [Name in NonPublishOperation]: OperationHandler<Name> } = {
  open: async ({ broker, caller }, reader) => {
    await broker.open(caller, readTopicCall(reader));
    return true;
  },
  close: async ({ broker, caller }, reader) => {
    await broker.close(caller, readTopicCall(reader));
    return true;
  },
  exist: ({ broker, caller }, reader) => broker.exist(caller, readTopicCall(reader)),
  subscribe: ({ broker, caller, format, onSecret }, reader) =>
    broker.subscribe(caller, {
      ...readTopicCall(reader),
      url: reader.text("url"),
      format,
      subscriptionId: reader.optionalText("subscriptionId"),
      offset: reader.optionalText("offset"),
      secret: reader.optionalText("secret"),
      ...(onSecret && { onSecret }),
      ...readOptions(reader),
    }),
  unSubscribe: async ({ broker, caller }, reader) => {
    await broker.unSubscribe(caller, { subscriptionId: reader.text("subscriptionId") });
    return true;
  },
  getEvent: async ({ broker, caller }, reader) => toEventBody(await broker.getEvent(caller, readEventCall(reader))),
  getProof: async ({ broker, caller }, reader) => toProof(await broker.getProof(caller, readEventCall(reader))),
  list: async ({ broker, caller }, reader) =>
    toTopicPage(
      await broker.list(caller, {
        pageIndex: reader.pageIndex() ?? 0,
        pageSize: reader.integer("pageSize") ?? pageSizeLeftOut,
        groupId: reader.optionalText("groupId"),
      }),
    ),
  state: async ({ broker, caller }, reader) => toTopicState(await broker.state(caller, readTopicCall(reader))),
};

/** The parameters of `publish`. */
export function readPublishCall(reader: ParameterReader): PublishCall {
  return {
    topic: reader.text("topic"),
    groupId: reader.optionalText("groupId"),
    content: reader.content(),
    extensions: reader.extensions(),
    key: reader.publishKey(),
  };
}

function readOptions(reader: ParameterReader): { readonly options?: DeliveryOptionsCall } {
  const options: DeliveryOptionsCall = {
    form: reader.optionalText("format"),
    concurrency: reader.integer("concurrency"),
    batchEvents: reader.integer("batch"),
    batchMs: reader.integer("batchMs"),
    onFailure: reader.optionalText("onFailure"),
    attemptsMax: reader.integer("attemptsMax"),
  };
  return Object.values(options).every((value) => value === undefined) ? {} : { options };
}

function readEventCall(reader: ParameterReader): EventCall {
  return { eventId: reader.text("eventId"), groupId: reader.optionalText("groupId") };
}

function readTopicCall(reader: ParameterReader): TopicCall {
  return { topic: reader.text("topic"), groupId: reader.optionalText("groupId") };
}
