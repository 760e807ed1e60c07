import * as z from "zod";

const text = z.string();
const digits = text.meta({ pattern: "^[0-9]+$" });

/** User properties that tell an MQTT 5 subscriber where an event is on the chain, besides those of its publisher. A live event is on no chain and has none. */
export function mqttPlaceSchema(prefix: string) {
  return z
    .object({
      [`${prefix}eventId`]: text.describe("Identifier of the event."),
      [`${prefix}sequence`]: digits.describe("Number of the event in its topic."),
      [`${prefix}block`]: digits.describe("Block of the event."),
    })
    .partial()
    .catchall(text);
}

/** Headers of a STOMP MESSAGE. Further ones are extensions and headers of the publisher. */
export const stompMessageHeadersSchema = z
  .object({
    destination: text.describe("Topic of the event."),
    "message-id": text.describe(
      "Identifier of the event. Before STOMP 1.2 with an addition while another event with this `eventId` is unacknowledged.",
    ),
    eventId: text.describe("Identifier of the event."),
    subscription: text.optional().describe("The `id` of the SUBSCRIBE, if it has one."),
    "subscription-id": text.describe("Identifier of the subscription in `/admin/listSubscription`."),
    ack: text
      .optional()
      .describe("The `id` for ACK and NACK of this event. Only in STOMP 1.2, and not with `ack:auto`."),
    "content-type": text.optional().describe("Type that the publisher gave."),
    "content-length": digits.describe("Bytes of the content."),
  })
  .catchall(text);

/** Headers of a SEND. Further ones are extensions and the publisher's own headers; subscribers get both with the event. */
export function stompSendHeadersSchema(prefix: string) {
  return z
    .object({
      destination: text.describe("Topic to publish to."),
      groupId: text.optional().describe("Chain group; left out for the default group."),
      receipt: text
        .optional()
        .describe(
          "Asks for a RECEIPT, which comes once the event is durable; inside a transaction, once the broker has the SEND.",
        ),
      transaction: text.optional().describe("Transaction that this SEND belongs to; its COMMIT publishes the event."),
      "content-type": text.optional().describe("Type of the content."),
      "content-length": digits.optional().describe("Bytes of the body."),
      traceparent: text.optional().describe("W3C trace of the publish."),
      [`${prefix}publish-key`]: text
        .optional()
        .describe("Key that names this publish: however often a SEND with it is repeated, there is one event."),
    })
    .catchall(text);
}

/** Headers of the RECEIPT of a SEND. */
export const stompReceiptHeadersSchema = z
  .object({
    "receipt-id": text.describe("The `receipt` of the SEND."),
    eventId: text.optional().describe("Identifier of the event; none inside a transaction."),
  })
  .catchall(text);

/** Headers of an ERROR, after which the connection ends. */
export const stompErrorHeadersSchema = z
  .object({
    message: text.describe("What is wrong."),
    code: digits.optional().describe("Code from the error catalogue."),
    "receipt-id": text.optional().describe("The `receipt` of the frame that is refused."),
  })
  .catchall(text);
