import { BrokerError, quote } from "@stele/wire";

/** Forms of an event in a callback. Binary CloudEvents have no signature that covers their attributes: a signed callback is structured. */
export const eventForms = ["interface", "cloudevents", "cloudevents-binary"] as const;
export type EventForm = (typeof eventForms)[number];

/** Topics of one subscription that may be delivered at once. */
export const concurrencyMax = 64;
/** Events in one request. */
export const batchEventsMax = 1_000;
/** How long a batch may wait to be full, in milliseconds. */
export const batchMsMax = 60_000;

/** What becomes of an event whose attempts fail: the subscription is suspended before it, or skips it. */
export const failureRules = ["suspend", "skip"] as const;
/** Failed attempts after which an event may be skipped, at most. */
export const skipAfterMax = 100;
/** The same, unless the call says so: about 9 minutes with the usual pauses between them. */
const skipAfterDefault = 10;

/** How a subscription differs from the usual delivery: one event of the interface's form in a request, one after the other over all topics. */
export interface DeliveryOptions {
  readonly form?: EventForm | undefined;
  /** Topics delivered at once; the order of each topic stays. */
  readonly concurrency?: number | undefined;
  /** Events that one request may carry. It is a batch also where it carries one. */
  readonly batchEvents?: number | undefined;
  /** How long a batch that is not full waits for more events. */
  readonly batchMs?: number | undefined;
  /** Failed attempts after which an event is skipped and becomes a dead letter; undefined if none is skipped. */
  readonly skipAfter?: number | undefined;
}

/** What a call asks for; what is undefined stays as it is, and is as usual in a new subscription. */
export interface DeliveryOptionsCall {
  readonly form?: string | undefined;
  readonly concurrency?: number | undefined;
  /** 0 ends batches. */
  readonly batchEvents?: number | undefined;
  readonly batchMs?: number | undefined;
  /** One of {@link failureRules}. */
  readonly onFailure?: string | undefined;
  /** Where events are skipped: after so many failed attempts. */
  readonly attemptsMax?: number | undefined;
}

/** The options that result; undefined where all are as usual. @throws BrokerError 200001. */
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

/** Whether two subscriptions are delivered alike. Both were made by {@link changeOptions}. */
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
