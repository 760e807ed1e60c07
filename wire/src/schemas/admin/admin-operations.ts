import * as z from "zod";
import {
  adminBlockPageSchema,
  adminDeadLetterPageSchema,
  adminDocumentSchema,
  adminEventDetailsSchema,
  adminEventPageSchema,
  adminFiguresSchema,
  adminGroupPageSchema,
  adminNodePageSchema,
  adminSessionSchema,
  adminSessionPageSchema,
  adminSkippedPageSchema,
  adminSubscriptionDetailsSchema,
  adminSubscriptionPageSchema,
  adminTopicDetailsSchema,
  adminTopicPageSchema,
  eventFormats,
  orderPageSchema,
  orderResultSchema,
  sessionKinds,
  subscriptionStates,
  webhookKinds,
} from "./admin-schemas.ts";
import {
  type AccessRuleBody,
  adminRolePageSchema,
  adminRoleRemovedSchema,
  adminRoleSchema,
  roleRulesSchema,
} from "./role-schemas.ts";

/** Items of a page, if the call does not say how many. */
export const pageLimitDefault = 50;
/** Maximum number of items of a page. */
export const pageLimitMax = 500;

/** A call of the admin API. A path has its parameters in braces. */
export interface AdminOperation {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly path: string;
  readonly summary: string;
  /** Values of a query string. */
  readonly query: z.ZodObject;
  /** The body; an empty object if the caller sends none. Undefined for a call that never has a body. */
  readonly body?: z.ZodObject;
  readonly result: z.ZodType;
}

/** Longest time for which the previous secret also signs, in seconds. */
const rotationSecondsMax = 30 * 24 * 60 * 60;

const none = z.strictObject({});
const flag = z.enum(["true", "false"]).transform((text) => text === "true");
const integer = (min: number, max = Number.MAX_SAFE_INTEGER) =>
  z
    .string()
    .regex(/^\d{1,16}$/)
    .transform(Number)
    .pipe(z.int().min(min).max(max))
    .meta({ type: "integer", pattern: undefined, minimum: min, maximum: max });
const groupId = z.string().optional().describe("The default group if left out.");

const paging = {
  cursor: z.string().optional().describe("`next` of the previous page."),
  limit: integer(1, pageLimitMax).optional().describe(`${pageLimitDefault} if left out.`),
};

/** For short lists: a page is as long as possible by default. */
const wholePaging = { ...paging, limit: paging.limit.describe(`${pageLimitMax} if left out.`) };

const search = {
  groupId: z.string().optional(),
  state: z.enum(subscriptionStates).optional(),
  kind: z.enum(webhookKinds).optional(),
  topic: z.string().optional().describe("The topic or pattern, as the subscription has it."),
  prefix: z.string().optional().describe("How the topic or pattern begins."),
  matches: z.string().optional().describe("A topic whose events the subscription gets."),
  host: z.string().optional().describe("Host of the url; without a port, at any port."),
  owner: z.string().optional(),
  node: z.string().optional().describe("Address of the node that delivers the subscription."),
  lagMin: integer(0).optional().describe("At least this many matching events wait."),
  failingMsMin: integer(0).optional().describe("The receiver has failed for at least this many milliseconds."),
};

const dryRun = flag.optional().describe("Changes nothing; the answer says what the order would affect.");
const place = z
  .union([z.string(), z.int().min(1)])
  .describe("OFFSET_FIRST, OFFSET_LAST, an eventId, a time (ISO 8601), or a sequence of the topic.");

const eventBound = z.union([integer(1), z.string()]).optional();

const letters = z
  .strictObject({
    eventId: z.string().optional().describe("The event of the dead letter."),
    all: z.literal(true).optional().describe("All dead letters, instead of one."),
  })
  .refine(({ eventId, all }) => (eventId === undefined) === (all === true), 'it must name either "eventId" or "all"');

const calls = {
  pause: { summary: "Holds a subscription until an operator resumes it.", body: none },
  resume: { summary: "Resumes a paused or suspended subscription at its cursor.", body: none },
  retry: { summary: "Makes the next attempt at once; also resumes a suspended subscription.", body: none },
  skip: {
    summary: "Moves the cursor past the next matching event, or past the one that `to` names.",
    body: z.strictObject({ to: place.optional() }),
  },
  replay: {
    summary: "Moves the cursor back: the event that `from` names and all later ones are delivered again.",
    body: z.strictObject({ from: place }),
  },
  change: {
    summary: "Changes what is delivered, and where and how; what the body leaves out stays.",
    body: z
      .strictObject({
        topic: z.string().describe("Topic or pattern. The cursor stays."),
        url: z
          .string()
          .describe("A new url drops the previous secret: the subscription has the `secret` of this change, or none."),
        secret: z
          .string()
          .nullable()
          .describe("As in subscribe; null removes it; `generate` makes one, which only this answer shows."),
        rotationSeconds: z
          .int()
          .min(0)
          .max(rotationSecondsMax)
          .describe("With `secret`: how long the previous one also signs, at the same url; a day if left out."),
        kind: z.enum(webhookKinds),
        format: z.enum(eventFormats).describe("Form of the events."),
        concurrency: z.int().min(1).describe("Topics to deliver at once."),
        batch: z.int().min(0).describe("Maximum number of events in one callback; 0 for callbacks of one event."),
        batchMs: z.int().min(0).describe("How long a batch that is not full waits for more events."),
        onFailure: z.enum(["suspend", "skip"]).describe("What happens to an event whose attempts fail."),
        attemptsMax: z.int().min(1).describe("With `skip`: failed attempts after which an event is a dead letter."),
      })
      .partial()
      .refine((change) => Object.keys(change).length > 0, "it names nothing to change")
      .refine(
        ({ secret, rotationSeconds }) => rotationSeconds === undefined || typeof secret === "string",
        '"rotationSeconds" goes with a secret only: to end a rotation, give the current secret, and 0',
      ),
  },
  test: { summary: "Sends a test event now, whatever the state of the subscription.", body: none },
  redeliver: {
    summary: "Delivers dead letters again, by position, and removes those that the receiver accepts.",
    body: letters,
  },
  discard: { summary: "Removes dead letters: their events are not delivered any more.", body: letters },
} as const;
export type OrderName = keyof typeof calls;
export const orderNames = Object.keys(calls) as readonly OrderName[]; // Its own keys.

const list = <Result extends z.ZodType>(path: string, summary: string, rest: { query: z.ZodObject; result: Result }) =>
  ({ method: "GET", path, summary, ...rest }) as const;

const named = {
  listSubscriptions: list("/subscriptions", "Callback subscriptions, by identifier.", {
    query: z.strictObject({ ...search, ...paging }),
    result: adminSubscriptionPageSchema,
  }),
  getSubscription: list("/subscriptions/{id}", "One subscription, with its last attempts.", {
    query: none,
    result: adminSubscriptionDetailsSchema,
  }),
  listDeadLetters: list("/subscriptions/{id}/dead-letters", "Events that a subscription skipped, by position.", {
    query: z.strictObject(paging),
    result: adminDeadLetterPageSchema,
  }),
  listSessions: list("/sessions", "Sessions of MQTT, STOMP and tails, by identifier.", {
    query: z.strictObject({
      groupId: search.groupId,
      kind: z.enum(sessionKinds).optional(),
      connected: flag.optional().describe("Whether the session has a connection."),
      owner: search.owner,
      node: z.string().optional().describe("Address of the node with the session's connection."),
      lagMin: search.lagMin,
      ...paging,
    }),
    result: adminSessionPageSchema,
  }),
  getSession: list("/sessions/{id}", "One session.", { query: none, result: adminSessionSchema }),
  listTopics: list("/topics", "Topics, in the order in which they were opened.", {
    query: z.strictObject({
      groupId,
      prefix: z.string().optional().describe("How the name begins."),
      filter: z.string().optional().describe("A pattern that the name matches."),
      ...paging,
    }),
    result: adminTopicPageSchema,
  }),
  getTopic: list("/topics/{topic}", "One topic.", {
    query: z.strictObject({ groupId }),
    result: adminTopicDetailsSchema,
  }),
  listEvents: list("/topics/{topic}/events", "Events of a topic with their places on the chain, the newest first.", {
    query: z.strictObject({
      groupId,
      from: eventBound.describe(
        "Only events from this sequence on, or of blocks made at this time (ISO 8601) or later.",
      ),
      before: eventBound.describe("Only events below this sequence, or of blocks made before this time (ISO 8601)."),
      ...paging,
    }),
    result: adminEventPageSchema,
  }),
  getEvent: list("/events/{eventId}", "One event, with its proof if asked for.", {
    query: z.strictObject({ groupId, proof: flag.optional() }),
    result: adminEventDetailsSchema,
  }),
  listBlocks: list("/blocks", "Blocks that have events, with their batches, the newest first.", {
    query: z.strictObject({ groupId, ...paging }),
    result: adminBlockPageSchema,
  }),
  listGroups: list("/groups", "The groups that this node serves.", {
    query: z.strictObject(wholePaging),
    result: adminGroupPageSchema,
  }),
  listSkippedEntries: list(
    "/groups/{groupId}/skipped-entries",
    "Entries of the chain that the index skipped, newest first.",
    {
      query: z.strictObject(paging),
      result: adminSkippedPageSchema,
    },
  ),
  listNodes: list("/nodes", "The nodes that are members, with their roles, and the newest changes of the cluster.", {
    query: z.strictObject(wholePaging),
    result: adminNodePageSchema,
  }),
  listFigures: list("/figures", "What this node did in the last hour, by intervals of 5 s.", {
    query: none,
    result: adminFiguresSchema,
  }),
  listRoles: list("/roles", "Roles of the config file and of the store, by name.", {
    query: z.strictObject(paging),
    result: adminRolePageSchema,
  }),
  getRole: list("/roles/{name}", "One role.", { query: none, result: adminRoleSchema }),
  setRole: {
    method: "PUT",
    path: "/roles/{name}",
    summary: "Stores a role, or replaces its rules. All nodes apply it within a second.",
    query: none,
    body: z.strictObject({ rules: roleRulesSchema }),
    result: adminRoleSchema,
  },
  deleteRole: {
    method: "DELETE",
    path: "/roles/{name}",
    summary: "Removes a role from the store. Whoever has a key with it is refused within a second.",
    query: none,
    result: adminRoleRemovedSchema,
  },
  getOpenApi: list("/openapi.json", "This document.", { query: none, result: adminDocumentSchema }),
} as const;

type OrderOperation = `${OrderName}Subscription` | `${OrderName}Subscriptions`;
export type AdminOperationName = keyof typeof named | OrderOperation;

const allDescription = "Finds all subscriptions. With `groupId` or other conditions, only those that meet them.";

function toOrderOperations(): { readonly [Name in OrderOperation]: AdminOperation } {
  const entries = orderNames.flatMap((name): readonly (readonly [OrderOperation, AdminOperation])[] => {
    const { summary, body } = calls[name];
    const one: AdminOperation = {
      method: "POST",
      path: `/subscriptions/{id}/${name}`,
      summary,
      query: z.strictObject({ dryRun }),
      body,
      result: orderResultSchema,
    };
    const all: AdminOperation = {
      ...one,
      path: `/subscriptions/${name}`,
      summary: `Orders ${name} for each subscription on a page of those that a search finds.`,
      query: z.strictObject({ ...search, ...paging, dryRun, all: flag.optional().describe(allDescription) }),
      result: orderPageSchema,
    };
    return [
      [`${name}Subscription`, one],
      [`${name}Subscriptions`, all],
    ];
  });
  return Object.fromEntries(entries) as { readonly [Name in OrderOperation]: AdminOperation }; // One of each name.
}

/** Every call of the admin API, by its name in the OpenAPI document. */
export const adminOperations: { readonly [Name in AdminOperationName]: AdminOperation } = {
  ...named,
  ...toOrderOperations(),
};

const querySchema = z.object({
  ...search,
  ...paging,
  kind: z.enum([...webhookKinds, ...sessionKinds]).optional(),
  connected: flag.optional(),
  dryRun,
  all: flag.optional(),
  proof: flag.optional(),
  from: eventBound,
  before: eventBound,
  filter: z.string().optional(),
});

/** The values of any query, once they are read. */
export type AdminQuery = z.output<typeof querySchema>;

/** The values of the body of an order, or of a role. */
export interface OrderBody {
  readonly rules?: readonly AccessRuleBody[] | undefined;
  readonly to?: string | number | undefined;
  readonly from?: string | number | undefined;
  readonly topic?: string | undefined;
  readonly url?: string | undefined;
  readonly secret?: string | null | undefined;
  readonly rotationSeconds?: number | undefined;
  readonly kind?: "RESTful" | "JsonRPC" | undefined;
  readonly format?: string | undefined;
  readonly concurrency?: number | undefined;
  readonly batch?: number | undefined;
  readonly batchMs?: number | undefined;
  readonly onFailure?: string | undefined;
  readonly attemptsMax?: number | undefined;
  readonly eventId?: string | undefined;
  readonly all?: true | undefined;
}
