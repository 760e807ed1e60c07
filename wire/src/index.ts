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
