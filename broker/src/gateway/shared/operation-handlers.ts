import type { OperationName, OperationResult } from "@stele/wire";
import type { Extensions } from "../../domain/event.ts";
import type { Broker, PublishCall, TopicCall } from "../../engine/broker.ts";
import { toProof } from "../../engine/query/to-proof.ts";
import { toEventBody, toTopicPage, toTopicState } from "./results.ts";

/** The parameters of one call, whatever carried them. Each method throws 200001 for a value that is missing or malformed. */
export interface ParameterReader {
  text(name: string): string;
  optionalText(name: string): string | undefined;
  /** Undefined when left out. Any number may come back, also one that is no page index. */
  pageIndex(): number | undefined;
  pageSize(): number | undefined;
  content(): Uint8Array;
  extensions(): Extensions;
}

/** Whom a call is for, and the kind of callback that its transport stands for. */
export interface OperationContext {
  readonly broker: Broker;
  readonly interfaceType: "RESTful" | "JsonRPC";
}

/** What is answered by a promise. A publish is submitted instead, see {@link readPublishCall}. */
export type AskedOperation = Exclude<OperationName, "publish">;

type OperationHandler<Name extends AskedOperation> = (
  context: OperationContext,
  reader: ParameterReader,
) => Promise<OperationResult<Name>>;

// Outside 1…99 the engine takes its default.
const pageSizeLeftOut = 0;

/** How each operation is asked of the broker: parameters in, documented result out, and no rule between. */
export const operationHandlers: { readonly [Name in AskedOperation]: OperationHandler<Name> } = {
  open: async ({ broker }, reader) => {
    await broker.open(readTopicCall(reader));
    return true;
  },
  close: async ({ broker }, reader) => {
    await broker.close(readTopicCall(reader));
    return true;
  },
  exist: ({ broker }, reader) => broker.exist(readTopicCall(reader)),
  subscribe: ({ broker, interfaceType }, reader) =>
    broker.subscribe({
      ...readTopicCall(reader),
      url: reader.text("url"),
      interfaceType,
      subscriptionId: reader.optionalText("subscriptionId"),
      offset: reader.optionalText("offset"),
      secret: reader.optionalText("secret"),
    }),
  unSubscribe: async ({ broker, interfaceType }, reader) => {
    await broker.unSubscribe({ subscriptionId: reader.text("subscriptionId"), interfaceType });
    return true;
  },
  getEvent: async ({ broker }, reader) =>
    toEventBody(await broker.getEvent({ eventId: reader.text("eventId"), groupId: reader.optionalText("groupId") })),
  getProof: async ({ broker }, reader) =>
    toProof(await broker.getProof({ eventId: reader.text("eventId"), groupId: reader.optionalText("groupId") })),
  list: async ({ broker }, reader) =>
    toTopicPage(
      await broker.list({
        pageIndex: reader.pageIndex() ?? 0,
        pageSize: reader.pageSize() ?? pageSizeLeftOut,
        groupId: reader.optionalText("groupId"),
      }),
    ),
  state: async ({ broker }, reader) => toTopicState(await broker.state(readTopicCall(reader))),
};

/** The parameters of `publish`. */
export function readPublishCall(reader: ParameterReader): PublishCall {
  return {
    topic: reader.text("topic"),
    groupId: reader.optionalText("groupId"),
    content: reader.content(),
    extensions: reader.extensions(),
  };
}

function readTopicCall(reader: ParameterReader): TopicCall {
  return { topic: reader.text("topic"), groupId: reader.optionalText("groupId") };
}
