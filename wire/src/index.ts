export { BatchWriter } from "./batch/batch-writer.ts";
export { batchEventsMax, decodeEvents } from "./batch/decode-events.ts";
export { type BatchEvent, encodedBytes, encodeEvents } from "./batch/encode-events.ts";
export { leafHash, merklePath, merkleRoot, verifyPath } from "./batch/merkle.ts";
export { MerkleTree } from "./batch/merkle-tree.ts";
export {
  parseCloudEvent,
  type PublishedCloudEvent,
  readBinaryCloudEvent,
  splitCloudEventBatch,
} from "./cloud-events/parse-cloud-event.ts";
export {
  type CloudEventSource,
  cloudEventKeys,
  otherExtensions,
  renderCloudEvent,
  toAttributeName,
  toCloudEventAttributes,
} from "./cloud-events/render-cloud-event.ts";
export { BrokerError, type BrokerErrorOptions, isBrokerError, toBrokerError } from "./errors/broker-error.ts";
export { type ErrorDefinition, type ErrorKind, type ErrorName, errorCatalogue } from "./errors/catalogue.ts";
export { quote } from "./errors/quote.ts";
export {
  type EventId,
  type EventIdParts,
  eventIdCharactersMax,
  formatEventId,
  parseEventId,
  topicDigest,
} from "./ids/event-id.ts";
export { type PublishRequest, publishDigest } from "./ids/publish-digest.ts";
export {
  type CheckedBatch,
  type CompactClaim,
  type CompactProof,
  findCheckedBatch,
  findCompactProof,
  formatCompactProof,
  type LogText,
  verifyCompactProof,
} from "./proof/compact-proof.ts";
export { checkProof, type ParsedProof, type Proof, parseProof, proofSchema } from "./proof/proof-schema.ts";
export type { ProofStep } from "./proof/refuted.ts";
export { topicAddress } from "./proof/topic-address.ts";
export { type ProofResult, type ProvenEvent, type VerifyOptions, verifyProof } from "./proof/verify-proof.ts";
export {
  type Notification,
  notificationBatchSchema,
  notificationMethod,
  notificationSchema,
  type RpcNotification,
  rpcNotificationSchema,
} from "./schemas/notifications.ts";
export { adminPath, toAdminOpenApi } from "./schemas/admin/admin-openapi.ts";
export {
  type AdminOperation,
  type AdminOperationName,
  type AdminQuery,
  adminOperations,
  type OrderBody,
  type OrderName,
  orderNames,
  pageLimitDefault,
  pageLimitMax,
} from "./schemas/admin/admin-operations.ts";
export type {
  AdminBlock,
  AdminDeadLetter,
  AdminEvent,
  AdminEventDetails,
  AdminFigures,
  AdminGroups,
  AdminNodes,
  AdminSession,
  AdminSkipped,
  AdminSubscription,
  AdminSubscriptionDetails,
  AdminTopic,
  AdminTopicDetails,
  OrderResultBody,
  Problem,
} from "./schemas/admin/admin-schemas.ts";
export { sessionKinds, webhookKinds } from "./schemas/admin/admin-schemas.ts";
export {
  type AccessRuleBody,
  type AdminRole,
  accessRuleSchema,
  roleRulesSchema,
  ruleActions,
  rulesPerRoleMax,
} from "./schemas/admin/role-schemas.ts";
export { type AsyncApiSettings, createAsyncApi } from "./schemas/asyncapi/asyncapi.ts";
export type { AsyncServer } from "./schemas/asyncapi/servers.ts";
export { type DocumentOptions, toOpenApi } from "./schemas/openapi.ts";
export { rpcBrokerFailureCode, rpcOwnErrors, toOpenRpc } from "./schemas/openrpc.ts";
export {
  idempotencyKeyHeader,
  integerParameters,
  type Operation,
  type OperationName,
  type OperationResult,
  operationNames,
  operations,
  restPathOf,
  secretHeader,
} from "./schemas/operations.ts";
export {
  type BrokerException,
  brokerExceptionSchema,
  type EventBody,
  eventSchema,
  type RpcErrorData,
  rpcErrorDataSchema,
  type SendResult,
  type SkippedListing,
  type SubscriptionEntry,
  type SubscriptionListing,
  sendResultSchema,
  skippedListingSchema,
  subscriptionEntrySchema,
  subscriptionListingSchema,
  type TopicInfo,
  type TopicPageBody,
  type TopicState,
  topicInfoSchema,
  topicPageSchema,
  topicStateSchema,
} from "./schemas/results.ts";
export { isTimestamp, parseDateTime, parseTime } from "./times/parse-time.ts";
