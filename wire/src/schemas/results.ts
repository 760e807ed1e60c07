import * as z from "zod";

const address = z.string().meta({ pattern: "^0x[0-9a-f]{40}$" });

/** Result of publish. `eventId` is empty unless `status` is SUCCESS. TIMEOUT means that the event may still be committed. */
export const sendResultSchema = z
  .strictObject({
    topic: z.string().describe("The topic published to."),
    eventId: z.string().describe("Identifier of the event; empty unless status is SUCCESS."),
    status: z
      .enum(["SUCCESS", "TIMEOUT"])
      .describe(
        "SUCCESS: the event is on the chain. TIMEOUT: the transaction was sent, but its outcome is not known yet.",
      ),
  })
  .meta({ title: "SendResult" });
export type SendResult = z.output<typeof sendResultSchema>;

/** Result of getEvent, and the event inside a notification. `content` is Base64. */
export const eventSchema = z
  .strictObject({
    topic: z.string().describe("Topic of the event."),
    content: z.base64().describe("The content, Base64."),
    extensions: z.record(z.string(), z.string()).describe("User-defined extension data."),
    eventId: z.string().describe("Identifier of the event."),
  })
  .meta({ title: "Event" });
export type EventBody = z.output<typeof eventSchema>;

const topicInfoFields = {
  topicName: z.string().describe("Name of the topic."),
  topicAddress: address.describe("Address of the topic's contract on the chain."),
  senderAddress: address.describe("Address that opened the topic."),
  createdTimestamp: z.int().describe("When the topic was opened, milliseconds since the epoch."),
};

/** One topic on a page of the list. */
export const topicInfoSchema = z.strictObject(topicInfoFields).meta({ title: "TopicInfo" });
export type TopicInfo = z.output<typeof topicInfoSchema>;

/** Result of state. `blockNumber` is 0 before the first event. */
export const topicStateSchema = z
  .strictObject({
    ...topicInfoFields,
    sequenceNumber: z.int().describe("Number of events published to the topic."),
    blockNumber: z.int().describe("Block of the latest event."),
  })
  .meta({ title: "TopicState" });
export type TopicState = z.output<typeof topicStateSchema>;

/** Result of list. `pageSize` is the effective size. */
export const topicPageSchema = z
  .strictObject({
    total: z.int().describe("Number of topics in the group."),
    pageIndex: z.int().describe("The page number, from 0."),
    pageSize: z.int().describe("The effective page size."),
    topicInfoList: z.array(topicInfoSchema).describe("Topics of the page, in the order in which they were opened."),
  })
  .meta({ title: "TopicPage" });
export type TopicPageBody = z.output<typeof topicPageSchema>;

/** One subscription of the admin listing. Counts are decimal strings; the time is UTC. */
export const subscriptionEntrySchema = z
  .strictObject({
    interfaceType: z.enum(["RESTful", "JsonRPC", "MQTT", "STOMP"]).describe("Kind of listener."),
    notifyingEventCount: z.string().describe("Matching events that are not delivered yet."),
    notifiedEventCount: z.string().describe("Events delivered and acknowledged."),
    notifyTimeStamp: z.string().describe("Time of the latest notification, YYYY-MM-DD HH:MM:SS, UTC."),
    subscribeId: z.string().describe("Subscription identifier."),
    topicName: z.string().describe("Topic or pattern of the subscription."),
    state: z
      .enum(["suspended", "paused"])
      .optional()
      .describe("Present only if nothing is delivered until somebody subscribes again, or an operator resumes it."),
  })
  .meta({ title: "SubscriptionEntry" });
export type SubscriptionEntry = z.output<typeof subscriptionEntrySchema>;

/** Result of the admin listing: node address (host:port), then subscription identifier. */
export const subscriptionListingSchema = z
  .record(z.string(), z.record(z.string(), subscriptionEntrySchema))
  .meta({ title: "SubscriptionListing" });
export type SubscriptionListing = z.output<typeof subscriptionListingSchema>;

/** Entries that the broker skipped in a group's index, newest first: logs by other writers that are not valid events or topics. */
export const skippedListingSchema = z
  .strictObject({
    groupId: z.string().describe("The group."),
    entries: z
      .array(
        z.strictObject({
          reason: z.string().describe("Reason, as in the label of stele_chain_entries_skipped_total."),
          details: z.string().describe("The reason in words."),
          blockNumber: z.int().describe("Block of the entry."),
          transactionHash: z.string().describe("Transaction of the entry; its sender wrote the entry."),
          logIndex: z.int().describe("Index of its log in the block."),
          topicAddress: z.string().describe("Address of the topic contract."),
          sender: z.string().optional().describe("Account that wrote the entry; absent if unknown."),
        }),
      )
      .describe("Newest first."),
  })
  .meta({ title: "SkippedListing" });
export type SkippedListing = z.output<typeof skippedListingSchema>;

/** Body of a failed REST call, with HTTP status 200. */
export const brokerExceptionSchema = z
  .strictObject({
    code: z.int().describe("Code from the error catalogue."),
    message: z.string().describe("What is wrong; the wording may change."),
  })
  .meta({ title: "BrokerException" });
export type BrokerException = z.output<typeof brokerExceptionSchema>;

/** `data` of a JSON-RPC error that has a code from the error catalogue. */
export const rpcErrorDataSchema = z
  .strictObject({
    exceptionTypeName: z.literal("BrokerException"),
    message: z.string().describe("What is wrong, with details."),
    code: z.int().describe("Code from the error catalogue."),
  })
  .meta({ title: "ErrorData" });
export type RpcErrorData = z.output<typeof rpcErrorDataSchema>;
