import { mqttPlaceSchema } from "../connection-headers.ts";
import { eventSchema } from "../results.ts";
import { anyBytes, type AsyncMessage, type AsyncPart } from "./async-document.ts";

export interface MqttPartOptions {
  readonly extensionPrefix: string;
  /** What subscribers get as payload: the content, or the event as JSON. */
  readonly mqttPayload: "raw" | "event";
  /** Whether 5.0 subscribers get the place of an event as user properties. */
  readonly hasMqttEventPlace: boolean;
}

const bindingVersion = "0.2.0";
const bindings = { mqtt: { bindingVersion } };
const octets = "application/octet-stream";

/** MQTT 3.1.1 and 5.0. */
export function toMqttPart(options: MqttPartOptions): AsyncPart {
  return {
    kind: "mqtt",
    channels: {
      mqttTopic: {
        address: "{topic}",
        title: "MQTT topic",
        description:
          "Topics of the broker are those of MQTT; a SUBSCRIBE may have filters and shares. See docs/mqtt.md.",
        messages: ["mqttEvent", "mqttPublish"],
        parameters: { topic: { description: "Topic name, with its slashes." } },
      },
    },
    operations: {
      mqttDeliver: {
        action: "send",
        channel: "mqttTopic",
        messages: ["mqttEvent"],
        summary: "Sends each event to its subscribers.",
        description: "With the lower QoS of subscription and publish; events of other interfaces count as QoS 1.",
        bindings,
      },
      mqttPublish: {
        action: "receive",
        channel: "mqttTopic",
        messages: ["mqttPublish"],
        summary: "Publishes an event.",
        description: "With QoS 1 and 2, the acknowledgement comes after the event is on the chain.",
        bindings,
      },
    },
    messages: {
      mqttEvent: toEventMessage(options),
      mqttPublish: {
        summary: "The content of an event. User properties of 5.0 become extensions.",
        contentType: octets,
        payload: anyBytes,
        bindings,
      },
    },
  };
}

function toEventMessage({ mqttPayload, hasMqttEventPlace, extensionPrefix }: MqttPartOptions): AsyncMessage {
  if (mqttPayload === "event") {
    const contentType = "application/json";
    return {
      summary: "The event as JSON.",
      contentType,
      payload: eventSchema,
      bindings: { mqtt: { payloadFormatIndicator: 1, contentType, bindingVersion } },
    };
  }
  return {
    summary: "The content of the event. With 5.0, headers are user properties.",
    contentType: octets,
    payload: anyBytes,
    ...(hasMqttEventPlace && { headers: mqttPlaceSchema(extensionPrefix) }),
    bindings,
  };
}
