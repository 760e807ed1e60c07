import { BrokerError } from "@stele/wire";
import type { CancelSignal } from "../../lib/cancellation.ts";
import type { KeyedSlots } from "../../lib/keyed-slots.ts";
import type {
  AttemptOptions,
  AttemptOutcome,
  CallbackTarget,
  Notification,
  Sink,
  TestOutcome,
} from "../../ports/sink.ts";

/** Answers an attempt, at once or later. */
export type Receiver = (notification: Notification) => AttemptOutcome | Promise<AttemptOutcome>;

/** A sink whose receivers are functions, by url. It remembers every attempt. */
export class RecordingSink implements Sink {
  readonly attempts: Notification[] = [];
  readonly checked: CallbackTarget[] = [];
  readonly tested: CallbackTarget[] = [];
  /** Outcome of each consent test from now on. */
  testOutcome: TestOutcome["outcome"] = { status: "accepted" };
  /** Whether each consent test from now on hangs until its signal aborts. */
  isTestHanging = false;
  /** Limits the concurrent attempts at one host; no limit if undefined. */
  slots: KeyedSlots<string> | undefined;
  readonly #receivers = new Map<string, Receiver>();

  /** Sets the receiver at a url; without one, every attempt there is accepted. */
  receive(url: string, receiver: Receiver): void {
    this.#receivers.set(url, receiver);
  }

  async checkTarget(target: CallbackTarget): Promise<void> {
    this.checked.push(target);
    if (!target.url.startsWith("http")) throw new BrokerError("urlInvalid");
  }

  async attempt(
    notification: Notification,
    signal: CancelSignal,
    { mayStart }: AttemptOptions = {},
  ): Promise<AttemptOutcome> {
    if (mayStart?.() === false) return { status: "withheld" };
    this.attempts.push(notification);
    const receiver = this.#receivers.get(notification.subscription.url);
    if (receiver === undefined) return { status: "accepted" };
    return new Promise((resolve, reject) => {
      const abort = (): void => resolve({ status: "failed", reason: "aborted" });
      signal.addEventListener("abort", abort, { once: true });
      Promise.resolve(receiver(notification))
        .then(resolve, reject)
        .finally(() => signal.removeEventListener("abort", abort));
    });
  }

  enter({ url }: CallbackTarget, signal: CancelSignal): ReturnType<Sink["enter"]> {
    return this.slots?.take(new URL(url).host, signal);
  }

  async test(target: CallbackTarget, signal: CancelSignal, mayStart?: () => boolean): Promise<TestOutcome> {
    if (mayStart?.() === false) return { outcome: { status: "failed", reason: "withheld" }, answer: undefined };
    this.tested.push(target);
    if (this.isTestHanging) {
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
      return { outcome: { status: "failed", reason: "the broker is stopping" }, answer: undefined };
    }
    return { outcome: this.testOutcome, answer: undefined };
  }

  async stop(): Promise<void> {}

  /** Sequences attempted for a subscription, in order. */
  sequencesOf(subscriptionId: string): readonly number[] {
    const own = this.attempts.filter((attempt) => attempt.subscription.id === subscriptionId);
    return own.map((attempt) => attempt.event.sequence);
  }
}
