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

/** How a subscription differs from the usual delivery: one event of the interface's form in a request, one after the other over all topics. */
export interface DeliveryOptions {
  readonly form?: EventForm | undefined;
  /** Topics delivered at once; the order of each topic stays. */
  readonly concurrency?: number | undefined;
  /** Events that one request may carry. It is a batch also where it carries one. */
  readonly batchEvents?: number | undefined;
  /** How long a batch that is not full waits for more events. */
  readonly batchMs?: number | undefined;
}

/** What a call asks for; what is undefined stays as it is, and is as usual in a new subscription. */
export interface DeliveryOptionsCall {
  readonly form?: string | undefined;
  readonly concurrency?: number | undefined;
  /** 0 ends batches. */
  readonly batchEvents?: number | undefined;
  readonly batchMs?: number | undefined;
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
  const changed: DeliveryOptions = {
    ...(form !== "interface" && { form }),
    ...(concurrency > 1 && { concurrency }),
    ...(batchEvents > 0 && { batchEvents }),
    ...(batchEvents > 0 && batchMs > 0 && { batchMs }),
  };
  return Object.keys(changed).length === 0 ? undefined : changed;
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
