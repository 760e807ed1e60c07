import type * as z from "zod";
import { type JsonSchema, toJsonSchema } from "../json-schema.ts";

/** Servers that clients connect to; and `receiver`, for the servers that the broker calls. */
export type ServerKind = "http" | "mqtt" | "stomp" | "receiver";

/** Channels and operations that servers of one kind have, and their messages. Names are those of the document. */
export interface AsyncPart {
  readonly kind: ServerKind;
  readonly channels: Readonly<Record<string, AsyncChannel>>;
  readonly operations: Readonly<Record<string, AsyncOperation>>;
  readonly messages: Readonly<Record<string, AsyncMessage>>;
}

export interface AsyncChannel {
  /** Null if the channel has none, or only a client knows it. */
  readonly address: string | null;
  readonly title: string;
  readonly description: string;
  readonly messages: readonly string[];
  readonly parameters?: JsonSchema;
}

export interface AsyncOperation {
  /** Whether the broker sends its messages or receives them. */
  readonly action: "send" | "receive";
  readonly channel: string;
  readonly messages: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly bindings?: JsonSchema;
  /** The channel and messages of answers. */
  readonly reply?: { readonly channel: string; readonly messages: readonly string[] };
}

export interface AsyncMessage {
  readonly summary: string;
  readonly contentType: string;
  /** A zod schema has a title, which names the schema among the components. */
  readonly payload: z.ZodType | JsonSchema;
  readonly headers?: z.ZodType;
  readonly bindings?: JsonSchema;
}

/** The schema of a payload of any bytes. */
export const anyBytes: JsonSchema = { description: "The content of the event, byte for byte." };

/** A schema in the dialect of AsyncAPI 3.0, which is a superset of JSON Schema draft 7. */
function toAsyncSchema(schema: z.ZodType): JsonSchema {
  return toJsonSchema(schema, "draft-7");
}

export const toReference = (path: string): JsonSchema => ({ $ref: `#/${path}` });

/** A channel on the servers of these names. */
export function toChannel(channel: AsyncChannel, servers: readonly string[]): JsonSchema {
  const messages = channel.messages.map((name) => [name, toReference(`components/messages/${name}`)]);
  return {
    ...channel,
    messages: Object.fromEntries(messages),
    servers: servers.map((name) => toReference(`servers/${name}`)),
  };
}

export function toOperation({ channel, messages, reply, ...rest }: AsyncOperation): JsonSchema {
  return { ...rest, ...toPlace({ channel, messages }), ...(reply && { reply: toPlace(reply) }) };
}

/** References to a channel and to its messages, not to the components (AsyncAPI 3.0.0, "Operation Object"). */
function toPlace({ channel, messages }: Pick<AsyncOperation, "channel" | "messages">) {
  return {
    channel: toReference(`channels/${channel}`),
    messages: messages.map((message) => toReference(`channels/${channel}/messages/${message}`)),
  };
}

export function toMessage(name: string, { payload, headers, ...rest }: AsyncMessage): JsonSchema {
  const title = titleOf(payload);
  return {
    name,
    ...rest,
    payload: title === undefined ? payload : toReference(`components/schemas/${title}`),
    ...(headers && { headers: toAsyncSchema(headers) }),
  };
}

/** The schemas of messages, by their titles. */
export function toSchemas(messages: readonly AsyncMessage[]): JsonSchema {
  const named = messages.flatMap(({ payload }) => {
    const title = titleOf(payload);
    return title === undefined ? [] : [[title, toAsyncSchema(payload as z.ZodType)]]; // It has a title, so it is a schema.
  });
  return Object.fromEntries(named);
}

function titleOf(payload: AsyncMessage["payload"]): string | undefined {
  return "_zod" in payload ? (payload as z.ZodType).meta()?.title : undefined;
}
