/** Class of failure that a code belongs to; each gateway maps a kind to its protocol's status. */
export type ErrorKind =
  | "invalid"
  | "unauthenticated"
  | "forbidden"
  | "not-found"
  | "conflict"
  | "exhausted"
  | "unavailable"
  | "internal";

/** One row of the catalogue. `retry` says whether the same call can succeed later without changes. */
export interface ErrorDefinition {
  readonly code: number;
  readonly kind: ErrorKind;
  readonly message: string;
  readonly retry: boolean;
}

const invalid = (code: number, message: string): ErrorDefinition => ({ code, kind: "invalid", message, retry: false });

const define = (code: number, kind: ErrorKind, options: { message: string; retry: boolean }): ErrorDefinition => ({
  code,
  kind,
  ...options,
});

/** Every error that the broker returns, by name. Codes are API and never change; messages may. 100xxx is the caller's fault; 200xxx is mostly the service's. */
export const errorCatalogue = {
  topicNotExist: define(100101, "not-found", { message: "topic not exist", retry: false }),
  topicTooLong: invalid(100102, "topic name exceeds max length"),
  topicBlank: invalid(100103, "topic name is blank"),
  pageIndexInvalid: invalid(100104, "page index is not an integer from 0"),
  topicInvalidCharacter: invalid(100106, "topic name contains an invalid character"),
  subscriptionElsewhere: define(100108, "conflict", {
    message: "subscription belongs to another topic or group",
    retry: false,
  }),
  topicPatternInvalid: invalid(100109, "topic pattern is invalid"),
  topicClosed: define(100112, "conflict", { message: "topic is closed", retry: false }),
  writerRefused: define(100113, "forbidden", {
    message: "this broker is not among the topic's writers",
    retry: false,
  }),
  publishKeyReused: define(100114, "conflict", {
    message: "publish key was used for another request",
    retry: false,
  }),
  contentBlank: invalid(100200, "content is blank"),
  contentTooLong: invalid(100201, "content exceeds max length"),
  extensionsTooLong: invalid(100204, "extensions exceed max length"),
  extensionKeyInvalid: invalid(100206, "extension key lacks the prefix"),
  eventIdBlank: invalid(100300, "eventId is blank"),
  eventIdTooLong: invalid(100301, "eventId exceeds max length"),
  eventIdIllegal: invalid(100302, "eventId is illegal"),
  eventNotExist: define(100303, "not-found", { message: "eventId does not exist", retry: false }),
  eventBeyondHead: define(100304, "not-found", { message: "eventId is beyond the chain's height", retry: true }),
  groupInvalid: invalid(100306, "groupId is invalid"),
  urlInvalid: invalid(100501, "url is malformed or not allowed"),
  subscriptionIdBlank: invalid(100503, "subscriptionId is blank"),
  subscriptionNotExist: define(100504, "not-found", { message: "subscriptionId does not exist", retry: false }),
  subscriptionIdInvalid: invalid(100505, "subscriptionId is not a UUID"),
  receiverNotAgreed: define(100506, "forbidden", { message: "receiver did not agree to be called", retry: true }),
  subscriptionHeld: define(100507, "conflict", {
    message: "the subscription's state does not allow this",
    retry: false,
  }),
  sessionNotExist: define(100508, "not-found", { message: "session does not exist", retry: false }),
  noCoordinator: define(100601, "conflict", { message: "no coordination module is configured", retry: false }),
  credentialRefused: define(100701, "unauthenticated", { message: "credential is missing or wrong", retry: false }),
  accessDenied: define(100702, "forbidden", { message: "not allowed", retry: false }),
  callerRefused: define(100703, "forbidden", { message: "this origin or host may not call", retry: false }),
  roleNotExist: define(100704, "not-found", { message: "role does not exist", retry: false }),
  roleFixed: define(100705, "conflict", { message: "role cannot be stored or removed", retry: false }),
  unknown: define(200000, "internal", { message: "unknown error", retry: false }),
  parameterInvalid: invalid(200001, "a parameter is missing or malformed"),
  transactionTimeout: define(200201, "unavailable", {
    message: "transaction timed out, its fate is not known yet",
    retry: true,
  }),
  transactionFailed: define(200202, "internal", { message: "transaction was not correctly executed", retry: true }),
  chainUnreachable: define(200205, "unavailable", { message: "chain cannot be reached", retry: true }),
  proofUnavailable: define(200206, "unavailable", {
    message: "the chain returns no proof of the event",
    retry: false,
  }),
  storeUnreachable: define(200207, "unavailable", { message: "the broker's database cannot be reached", retry: true }),
  indexDamaged: define(200208, "unavailable", {
    message: "stored data is damaged, and the chain does not return it",
    retry: true,
  }),
  eventUnavailable: define(200209, "unavailable", {
    message: "the store dropped the event, and the chain does not return it",
    retry: true,
  }),
  groupUnknown: define(200211, "not-found", { message: "unknown group", retry: false }),
  busy: define(200300, "exhausted", { message: "busy: too much is waiting, try later", retry: true }),
  overQuota: define(200301, "exhausted", { message: "over a quota, try later", retry: true }),
} as const satisfies Record<string, ErrorDefinition>;

/** The name of a row of the catalogue. */
export type ErrorName = keyof typeof errorCatalogue;
