import type { JsonSchema } from "../json-schema.ts";
import type { DocumentOptions } from "../openapi.ts";
import { toChannel, toMessage, toOperation, toSchemas } from "./async-document.ts";
import { callbackPart } from "./callback-part.ts";
import { type MqttPartOptions, toMqttPart } from "./mqtt-part.ts";
import { type ServerSettings, type AsyncServer, namesOf, toSecuritySchemes, toServers } from "./servers.ts";
import { toStompPart } from "./stomp-part.ts";
import { tailPart } from "./tail-part.ts";

/** The settings that the document depends on. */
export interface AsyncApiSettings extends ServerSettings, Omit<MqttPartOptions, "extensionPrefix"> {}

export type AsyncApiOptions = AsyncApiSettings & Pick<DocumentOptions, "version" | "extensionPrefix">;

/**
 * Returns a function that makes the AsyncAPI 3.0.0 document for the servers that a reader can reach: what the broker sends and receives besides calls. The
 * schemas are those of the OpenAPI document. A protocol without a server is left out.
 */
export function createAsyncApi(options: AsyncApiOptions): (servers: readonly AsyncServer[]) => JsonSchema {
  const parts = [callbackPart, tailPart, toMqttPart(options), toStompPart(options.extensionPrefix)].map((part) => ({
    ...part,
    messages: mapValues(part.messages, (message, name) => toMessage(name, message)),
    operations: mapValues(part.operations, toOperation),
    schemas: toSchemas(Object.values(part.messages)),
  }));
  return (servers) => {
    const served = parts.filter(({ kind }) => namesOf(servers, kind).length > 0);
    const channels = served.map((part) =>
      mapValues(part.channels, (channel) => toChannel(channel, namesOf(servers, part.kind))),
    );
    return {
      asyncapi: "3.0.0",
      info: {
        title: "Stele",
        version: options.version,
        description:
          "Event broker: what it sends to receivers and subscribers, and what they publish over connections. The OpenAPI document has the calls.",
      },
      defaultContentType: "application/json",
      servers: toServers(servers, options),
      channels: merge(channels),
      operations: merge(served.map(({ operations }) => operations)),
      components: {
        messages: merge(served.map(({ messages }) => messages)),
        schemas: merge(served.map(({ schemas }) => schemas)),
        securitySchemes: toSecuritySchemes(servers, options),
      },
    };
  };
}

function merge(records: readonly JsonSchema[]): JsonSchema {
  return Object.assign({}, ...records) as JsonSchema; // Of records of that type.
}

function mapValues<Value>(
  values: Readonly<Record<string, Value>>,
  map: (value: Value, name: string) => JsonSchema,
): JsonSchema {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value, name)]));
}
