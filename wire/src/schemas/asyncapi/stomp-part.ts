import {
  stompErrorHeadersSchema,
  stompMessageHeadersSchema,
  stompReceiptHeadersSchema,
  stompSendHeadersSchema,
} from "../connection-headers.ts";
import { anyBytes, type AsyncPart } from "./async-document.ts";

const octets = "application/octet-stream";
const answers = ["stompReceipt", "stompError"];

/** STOMP 1.0, 1.1 and 1.2. */
export function toStompPart(extensionPrefix: string): AsyncPart {
  return {
    kind: "stomp",
    channels: {
      stompDestination: {
        address: "{destination}",
        title: "STOMP destination",
        description: "Destinations are topics of the broker; a SUBSCRIBE may have filters. See docs/stomp.md.",
        messages: ["stompMessage", "stompSend"],
        parameters: { destination: { description: "Topic name, with its slashes." } },
      },
      stompConnection: {
        address: null,
        title: "Connection of a STOMP client",
        description: "Answers to frames, in the order of the frames.",
        messages: answers,
      },
    },
    operations: {
      stompDeliver: {
        action: "send",
        channel: "stompDestination",
        messages: ["stompMessage"],
        summary: "Sends each event to its subscribers.",
      },
      stompPublish: {
        action: "receive",
        channel: "stompDestination",
        messages: ["stompSend"],
        summary: "Publishes an event.",
        description: "With `receipt`, the RECEIPT comes after the event is on the chain. An ERROR ends the connection.",
        reply: { channel: "stompConnection", messages: answers },
      },
    },
    messages: {
      stompMessage: {
        summary: "MESSAGE: the content of an event.",
        contentType: octets,
        payload: anyBytes,
        headers: stompMessageHeadersSchema,
      },
      stompSend: {
        summary: "SEND: the content of an event.",
        contentType: octets,
        payload: anyBytes,
        headers: stompSendHeadersSchema(extensionPrefix),
      },
      stompReceipt: {
        summary: "RECEIPT: the broker has done what a frame asks for.",
        contentType: octets,
        payload: { description: "Empty." },
        headers: stompReceiptHeadersSchema,
      },
      stompError: {
        summary: "ERROR: why a frame was refused.",
        contentType: "text/plain",
        payload: { type: "string", description: "What is wrong, in words." },
        headers: stompErrorHeadersSchema,
      },
    },
  };
}
