import { BrokerError, quote } from "@stele/wire";

/** Forms of an event in a callback. No signature covers the attributes of a binary CloudEvent, so a signed callback uses the structured form. */
export const eventForms = ["interface", "cloudevents", "cloudevents-binary"] as const;
export type EventForm = (typeof eventForms)[number];

/** Maximum number of topics of one subscription that are delivered at the same time. */
export const concurrencyMax = 64;
/** Maximum number of events in one request. */
export const batchEventsMax = 1_000;
/** Longest time that a batch may wait for more events, in milliseconds. */
export const batchMsMax = 60_000;

/** What the broker does when the attempts for an event fail: it suspends the subscription before the event, or skips the event. */
export const failureRules = ["suspend", "skip"] as const;
/** Maximum number of failed attempts before an event is skipped. */
export const skipAfterMax = 100;
/** Default number of failed attempts before an event is skipped. With the default pauses they take 9 to 14 minutes. */
const skipAfterDefault = 10;

/** How a subscription differs from the default delivery: one event in each request, in the form `interface`, one request at a time, no event skipped. */
export interface DeliveryOptions {
  readonly form?: EventForm | undefined;
  /** Topics that are delivered at the same time; the events of each topic stay in order. */
  readonly concurrency?: number | undefined;
  /** Maximum number of events in one request. If set, a request with a single event is a batch too. */
  readonly batchEvents?: number | undefined;
  /** How long a batch that is not full waits for more events, in milliseconds. */
  readonly batchMs?: number | undefined;
  /** Failed attempts after which an event is skipped and becomes a dead letter; undefined if no event is skipped. */
  readonly skipAfter?: number | undefined;
}

/** The options that a call names. An option that is undefined keeps its value; in a new subscription it gets its default. */
export interface DeliveryOptionsCall {
  readonly form?: string | undefined;
  readonly concurrency?: number | undefined;
  /** 0 turns batches off, and drops `batchMs` too. */
  readonly batchEvents?: number | undefined;
  readonly batchMs?: number | undefined;
  /** One of {@link failureRules}. */
  readonly onFailure?: string | undefined;
  /** Failed attempts after which an event is skipped. Needs the failure rule `skip`. */
  readonly attemptsMax?: number | undefined;
}

/** Applies a call to the options and returns the result; undefined if all have their defaults. @throws BrokerError 200001. */
export function changeOptions(
  options: DeliveryOptions | undefined,
  call: DeliveryOptionsCall,
): DeliveryOptions | undefined {
  const form = call.form ?? options?.form ?? "interface";
  const concurrency = call.concurrency ?? options?.concurrency ?? 1;
  const batchEvents = call.batchEvents ?? options?.batchEvents ?? 0;
  const batchMs = call.batchMs ?? options?.batchMs ?? 0;
  if (!isForm(form)) throw refusal("format", `is ${quote(form)}, not one of ${eventForms.join(", ")}`);
  checkRange("concurrency", concurrency, { min: 1, max: concurrencyMax });
  checkRange("batch", batchEvents, { min: 0, max: batchEventsMax });
  checkRange("batchMs", batchMs, { min: 0, max: batchMsMax });
  const skipAfter = toSkipAfter(options, call);
  const changed: DeliveryOptions = {
    ...(form !== "interface" && { form }),
    ...(concurrency > 1 && { concurrency }),
    ...(batchEvents > 0 && { batchEvents }),
    ...(batchEvents > 0 && batchMs > 0 && { batchMs }),
    ...(skipAfter !== undefined && { skipAfter }),
  };
  return Object.keys(changed).length === 0 ? undefined : changed;
}

function toSkipAfter(options: DeliveryOptions | undefined, call: DeliveryOptionsCall): number | undefined {
  const { onFailure = options?.skipAfter === undefined ? "suspend" : "skip", attemptsMax } = call;
  if (!failureRules.some((rule) => rule === onFailure)) {
    throw refusal("onFailure", `is ${quote(onFailure)}, not one of ${failureRules.join(", ")}`);
  }
  if (onFailure === "suspend") {
    if (attemptsMax === undefined) return undefined;
    throw refusal("attemptsMax", 'goes with "onFailure": "skip" only');
  }
  const skipAfter = attemptsMax ?? options?.skipAfter ?? skipAfterDefault;
  checkRange("attemptsMax", skipAfter, { min: 1, max: skipAfterMax });
  return skipAfter;
}

/** Whether callbacks carry CloudEvents. */
export function isCloudEvent(options: DeliveryOptions | undefined): boolean {
  return options?.form !== undefined && options.form !== "interface";
}

/** Whether two results of {@link changeOptions} are equal. */
export function areSameOptions(left: DeliveryOptions | undefined, right: DeliveryOptions | undefined): boolean {
  return JSON.stringify(left) === JSON.stringify(right);
}

function isForm(text: string): text is EventForm {
  return eventForms.some((form) => form === text);
}

function checkRange(name: string, value: number, { min, max }: { readonly min: number; readonly max: number }): void {
  if (Number.isInteger(value) && value >= min && value <= max) return;
  throw refusal(name, `is ${value}, not an integer from ${min} to ${max}`);
}

function refusal(name: string, details: string): BrokerError {
  return new BrokerError("parameterInvalid", { details: `"${name}" ${details}` });
}
