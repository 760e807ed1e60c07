import * as z from "zod";
import { proofSchema } from "../../proof/proof-schema.ts";

const time = z.iso.datetime().describe("UTC.");
const hash = z.string().meta({ pattern: "^0x[0-9a-f]{64}$" });
const address = z.string().meta({ pattern: "^0x[0-9a-f]{40}$" });
const next = z.string().optional().describe("The cursor of the next page; absent on the last page.");

const pageOf = <Item extends z.ZodType>(item: Item, title: string) =>
  z.strictObject({ items: z.array(item), next }).meta({ title });

/** A failed call (RFC 9457). */
export const problemSchema = z
  .strictObject({
    type: z.literal("about:blank"),
    title: z.string().describe("What the code means."),
    status: z.int().describe("The HTTP status."),
    detail: z.string().describe("What is wrong; the wording may change."),
    code: z.int().describe("Code from the error catalogue."),
    retry: z.boolean().describe("Whether the same call can succeed later."),
    hints: z.array(z.string()).optional(),
  })
  .meta({ title: "Problem" });
export type Problem = z.output<typeof problemSchema>;

export const webhookKinds = ["RESTful", "JsonRPC"] as const;
export const sessionKinds = ["MQTT", "STOMP", "Tail"] as const;
export const subscriptionStates = ["active", "suspended", "paused", "locked", "damaged"] as const;

const failingSchema = z.strictObject({
  since: time,
  attempts: z.int().describe("Failed attempts since the last accepted attempt."),
  notBefore: time.optional().describe("The receiver asked for no attempt before this time."),
});

export const eventFormats = ["interface", "cloudevents", "cloudevents-binary"] as const;

const subscriptionFields = {
  id: z.string(),
  groupId: z.string(),
  kind: z.enum(webhookKinds),
  topic: z.string().describe("Topic or pattern."),
  url: z.string().describe("With `hidden` instead of user name, password and the values of the query."),
  hasSecret: z.boolean(),
  olderSecretUntil: time.optional().describe("Until when the previous secret also signs."),
  format: z.enum(eventFormats).optional().describe("Form of the events; absent for that of the interface."),
  concurrency: z.int().optional().describe("Topics delivered at once; absent for one event at a time."),
  batch: z.int().optional().describe("Maximum number of events in one callback; absent for callbacks of one event."),
  batchMs: z.int().optional().describe("How long a batch that is not full waits for more events."),
  onFailure: z.literal("skip").optional().describe("Absent if a receiver that fails suspends the subscription."),
  attemptsMax: z.int().optional().describe("Failed attempts after which an event is skipped."),
  state: z.enum(subscriptionStates),
  owner: z.string().optional().describe("Who made the subscription; absent if nobody had to log in."),
  node: z.string().optional().describe("Address of the delivering node; absent for a single process."),
  cursor: z.int().describe("Every matching event up to this position is acknowledged or skipped."),
  cursorBlock: z.int().describe("Block of the cursor."),
  lag: z.int().describe("Matching events after the cursor."),
  notified: z.int().describe("Matching events acknowledged."),
  notifiedAt: time.optional().describe("Time of the latest acknowledgement; absent while `notified` is 0."),
  createdAt: time,
  failing: failingSchema.optional().describe("Absent while the receiver works."),
  waitingSince: time
    .optional()
    .describe("Time of the block of the oldest event after the cursor; absent if the chain does not answer in time."),
  nextAttemptAt: time
    .optional()
    .describe("When the next attempt is due, as the delivering node knows or as the receiver asked by Retry-After."),
};

const attemptSchema = z.strictObject({
  at: time,
  outcome: z.enum(["accepted", "failed", "gone"]),
  eventId: z.string(),
  count: z.int().describe("Number of attempts: consecutive accepted ones are one entry, with the data of the newest."),
  durationMs: z.number(),
  status: z.int().optional().describe("HTTP status; absent without an answer."),
  reason: z.string().optional(),
  excerpt: z.string().optional().describe("How the answer to a failed attempt began, up to 1 KiB."),
});

/** A callback subscription of a list. */
export const adminSubscriptionSchema = z
  .strictObject({
    ...subscriptionFields,
    lastAttempt: attemptSchema.omit({ excerpt: true }).optional().describe("As far as the answering node knows."),
  })
  .meta({ title: "AdminSubscription" });
export type AdminSubscription = z.output<typeof adminSubscriptionSchema>;

export const adminSubscriptionDetailsSchema = z
  .strictObject({
    ...subscriptionFields,
    deadLetters: z.int().describe("Number of the subscription's dead letters."),
    attempts: z
      .array(attemptSchema)
      .describe("Newest first. Only the delivering node has attempts, those since it began to deliver."),
  })
  .meta({ title: "AdminSubscriptionDetails" });
export type AdminSubscriptionDetails = z.output<typeof adminSubscriptionDetailsSchema>;

export const adminDeadLetterSchema = z
  .strictObject({
    eventId: z.string(),
    topic: z.string(),
    position: z.int(),
    block: z.int(),
    attempts: z.int().describe("Attempts that failed."),
    reason: z.string().describe("Why the newest attempt failed."),
    failedAt: time.describe("When the newest attempt failed."),
  })
  .meta({ title: "AdminDeadLetter" });
export type AdminDeadLetter = z.output<typeof adminDeadLetterSchema>;
export const adminDeadLetterPageSchema = pageOf(adminDeadLetterSchema, "AdminDeadLetterPage");

export const adminSubscriptionPageSchema = pageOf(adminSubscriptionSchema, "AdminSubscriptionPage");

const testSchema = z.strictObject({
  outcome: z.enum(["accepted", "failed", "gone"]),
  status: z.int().optional().describe("HTTP status; absent without an answer."),
  reason: z.string().optional(),
  excerpt: z.string().optional().describe("How the answer began, up to 1 KiB."),
  durationMs: z.number(),
});

export const orderResultSchema = z
  .strictObject({
    id: z.string(),
    events: z.int().describe("Matching events skipped, delivered again or waiting; or dead letters removed."),
    unmatched: z
      .int()
      .optional()
      .describe(
        "After a change of the topic: waiting events that are not delivered, because the new topic does not match them.",
      ),
    dryRun: z.boolean(),
    letters: z
      .strictObject({
        left: z.int().describe("Number of dead letters that are left."),
        failure: z.strictObject({ eventId: z.string(), reason: z.string() }).optional().describe("The last failure."),
      })
      .optional()
      .describe("Only for orders about dead letters."),
    test: testSchema.optional().describe("Outcome of a test event."),
    secret: z.string().optional().describe("The secret that a change made; no other answer shows it."),
    error: z.strictObject({ code: z.int(), detail: z.string() }).optional().describe("Why the order was refused."),
  })
  .meta({ title: "OrderResult" });
export type OrderResultBody = z.output<typeof orderResultSchema>;

export const orderPageSchema = pageOf(orderResultSchema, "OrderPage");

export const adminSessionSchema = z
  .strictObject({
    id: z.string(),
    groupId: z.string(),
    kind: z.enum(sessionKinds),
    owner: z.string().optional().describe("Who owns the session; absent if nobody had to log in."),
    isConnected: z.boolean(),
    isSuspended: z.boolean(),
    node: z.string().optional().describe("Address of the connection's node; absent for a single process."),
    cursor: z.int().describe("Every matching event up to this position is acknowledged."),
    cursorBlock: z.int().describe("Block of the cursor."),
    lag: z.int().describe("Matching events that are not acknowledged; an event that two filters match counts twice."),
    waitingSince: time
      .optional()
      .describe("Time of the block of the oldest of these events; absent if the chain does not answer in time."),
    createdAt: time,
    filters: z.array(z.strictObject({ id: z.string(), topic: z.string(), qos: z.int() })),
  })
  .meta({ title: "AdminSession" });
export type AdminSession = z.output<typeof adminSessionSchema>;
export const adminSessionPageSchema = pageOf(adminSessionSchema, "AdminSessionPage");

const topicFields = {
  name: z.string(),
  address,
  sender: address.describe("Who opened the topic."),
  createdAt: time,
  sequence: z.int().describe("Sequence of the newest event."),
  block: z.int().describe("Block of the newest event."),
  isClosed: z.boolean(),
};

export const adminTopicSchema = z.strictObject(topicFields).meta({ title: "AdminTopic" });
export type AdminTopic = z.output<typeof adminTopicSchema>;
export const adminTopicPageSchema = pageOf(adminTopicSchema, "AdminTopicPage");

const writersSchema = z.strictObject({
  kind: z.enum(["everyone", "set"]),
  number: z.int().optional().describe("Number of the set of writers in the registry."),
  owner: address.optional().describe("Who may change the set."),
  isOwn: z.boolean().optional().describe("Whether the signer of this node is in the set."),
});

export const adminTopicDetailsSchema = z
  .strictObject({
    ...topicFields,
    events: z.int().describe("Events in the index."),
    size: z.strictObject({
      bytes: z.int().describe("Bytes of the encoded events."),
      batches: z.int(),
      isCut: z.boolean().describe("Whether only the newest batches of the topic were measured."),
    }),
    rate: z
      .strictObject({ events: z.int(), seconds: z.number().describe("The time in which they were published.") })
      .optional()
      .describe("Events of the last five minutes; absent if the chain does not give the times of its blocks."),
    lastEventAt: time.optional().describe("Time of the block of the newest event."),
    writers: writersSchema.optional().describe("Who may publish to the topic; absent if the chain does not answer."),
    subscriptions: z.int().describe("Callback subscriptions to the topic; the search `matches` lists them."),
  })
  .meta({ title: "AdminTopicDetails" });
export type AdminTopicDetails = z.output<typeof adminTopicDetailsSchema>;

const eventFields = {
  eventId: z.string(),
  topic: z.string(),
  sequence: z.int(),
  content: z.base64(),
  extensions: z.record(z.string(), z.string()),
  position: z.int(),
  block: z.int(),
  transactionHash: hash,
  logIndex: z.int().describe("Index, in the block, of the log of the event's batch."),
  indexInBatch: z.int().describe("From 0."),
  publisher: address,
};

export const adminEventSchema = z.strictObject(eventFields).meta({ title: "AdminEvent" });
export type AdminEvent = z.output<typeof adminEventSchema>;
export const adminEventPageSchema = pageOf(adminEventSchema, "AdminEventPage");

export const adminEventDetailsSchema = z
  .strictObject({ ...eventFields, proof: proofSchema.optional() })
  .meta({ title: "AdminEventDetails" });
export type AdminEventDetails = z.output<typeof adminEventDetailsSchema>;

const batchSchema = z.strictObject({
  topic: z.string(),
  firstSequence: z.int(),
  firstEventId: z.string(),
  count: z.int().describe("Events of the batch; their sequences follow one another."),
  bytes: z.int().describe("Bytes of the encoded events."),
  transactionHash: hash,
  logIndex: z.int(),
  publisher: address,
});

export const adminBlockSchema = z
  .strictObject({
    block: z.int(),
    batches: z.array(batchSchema).describe("In the order of the chain."),
    isCut: z.boolean().describe("Whether the block has more batches than are listed."),
  })
  .meta({ title: "AdminBlock" });
export type AdminBlock = z.output<typeof adminBlockSchema>;
export const adminBlockPageSchema = pageOf(adminBlockSchema, "AdminBlockPage");

const rollBackSchema = z.strictObject({
  at: time,
  fromBlock: z.int().describe("Newest block of the index before."),
  toBlock: z.int().describe("Newest block of the index after; -1 for none."),
  events: z.int().optional().describe("Events that the rollback removed; absent if another node rolled back."),
});

const wei = z.string().meta({ pattern: "^[0-9]+$" }).describe("In wei.");

const signerSchema = z.strictObject({
  address,
  balance: wei.optional(),
  fees: z
    .strictObject({ gasPrice: wei.optional(), maxFeePerGas: wei.optional(), maxPriorityFeePerGas: wei.optional() })
    .describe("Fees that the next transaction offers for a unit of gas."),
  transactionsUnderWay: z.int().describe("Transactions that are not final yet, including those that are not sent yet."),
});

const groupSchema = z.strictObject({
  groupId: z.string(),
  ready: z.boolean(),
  reason: z.string().optional().describe("Why the group is not ready."),
  warning: z.string().optional(),
  transactionFailure: z.string().optional().describe("Why publishes through this node fail, as part of `warning`."),
  role: z.enum(["follows", "watches"]).optional(),
  subscriptions: z.int().optional().describe("Active callback subscriptions that this node delivers."),
  held: z
    .strictObject({
      suspended: z.int(),
      paused: z.int(),
      locked: z.int().optional().describe("Subscriptions whose secrets no key of this node can decrypt."),
    })
    .optional()
    .describe("Callback subscriptions, of all nodes, that get no events, as of a few seconds ago."),
  lag: z
    .strictObject({ events: z.int(), seconds: z.number().optional() })
    .optional()
    .describe(
      "The largest number of undelivered events of one active callback subscription at this node, and the age of the oldest such event, as of a few seconds ago.",
    ),
  indexedBlock: z.int(),
  headBlock: z.int().optional(),
  rollBacks: z.int().describe("Rollbacks of the index."),
  rollBackHistory: z
    .array(rollBackSchema)
    .describe("The newest rollbacks that this node has seen since it started, newest first; at most 100."),
  chain: z.record(z.string(), z.union([z.string(), z.number()])).optional(),
  finality: z
    .union([z.enum(["latest", "safe", "finalized"]), z.int()])
    .optional()
    .describe(
      "Which blocks are final: a number counts the blocks on top. Absent, like `signer`, if the chain did not answer in time.",
    ),
  signer: signerSchema
    .optional()
    .describe("The account that signs the transactions of this node, as of a few seconds ago."),
});

const skippedSchema = z.strictObject({
  reason: z.string().describe("Why the entry was skipped, as in the label of stele_chain_entries_skipped_total."),
  details: z.string().describe("The same in words."),
  block: z.int(),
  transactionHash: hash,
  logIndex: z.int(),
  topicAddress: address.describe("The topic's contract."),
  sender: address.optional().describe("The account that wrote the entry, if known."),
});
export const adminSkippedPageSchema = pageOf(skippedSchema, "AdminSkippedPage");
export type AdminSkipped = z.output<typeof skippedSchema>;

export const adminGroupPageSchema = pageOf(groupSchema, "AdminGroups");
export type AdminGroups = z.output<typeof adminGroupPageSchema>;

const nodeSchema = z.strictObject({
  id: z.string().optional(),
  address: z.string().optional(),
  joinedAt: time.optional(),
  isOwn: z.boolean().describe("Whether this node answers the call."),
  roles: z.strictObject({
    follows: z.array(z.string()).describe("Groups whose index the node writes."),
    subscriptions: z.int().describe("Callback subscriptions of the node, in any state, as of a few seconds ago."),
    sessions: z
      .int()
      .describe(
        "Sessions with a connection to the node, as of a few seconds ago. Sessions that are not stored count only for the answering node.",
      ),
  }),
});

const memberChangeSchema = z.strictObject({
  at: time.describe("When the answering node noticed the change."),
  node: z.string().describe("The node's address; its identifier if the answering node never knew the address."),
  what: z
    .enum(["joined", "left", "gone", "took-over"])
    .describe("`gone`: the node did not renew its membership in time, for example after a kill."),
  groupId: z.string().optional().describe("The group whose index the node took over."),
  subscriptions: z.int().optional().describe("How many callback subscriptions the node took over."),
  from: z.string().optional().describe("The node that had the index or the subscriptions before; absent if unknown."),
});

export const adminNodePageSchema = z
  .strictObject({
    items: z.array(nodeSchema),
    next,
    history: z
      .array(memberChangeSchema)
      .describe(
        "The newest changes of the cluster that the answering node has noticed since it started, newest first; at most 100. Empty for a single process.",
      ),
  })
  .meta({ title: "AdminNodes" });
export type AdminNodes = z.output<typeof adminNodePageSchema>;

const percentiles = z.strictObject({ p50: z.number(), p95: z.number(), p99: z.number() });
const figureSchema = z.strictObject({
  at: time.describe("When the interval began."),
  published: z.int(),
  commits: z.int(),
  commitMs: percentiles.optional(),
  delivered: z.int(),
  failed: z.int(),
  attemptMs: percentiles.optional(),
  lagBlocks: z.int().describe("Blocks that the index is behind."),
  lagEvents: z.int().describe("Largest number of undelivered events of one active callback subscription at this node."),
  memoryBytes: z.int(),
});
export const adminFiguresSchema = z
  .strictObject({ intervalMs: z.int(), figures: z.array(figureSchema).describe("Oldest first, at most an hour.") })
  .meta({ title: "AdminFigures" });
export type AdminFigures = z.output<typeof adminFiguresSchema>;

export const adminDocumentSchema = z.looseObject({ openapi: z.string() }).meta({ title: "AdminDocument" });
