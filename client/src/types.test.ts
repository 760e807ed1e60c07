import { describe, expectTypeOf, it } from "vitest";
import { AdminClient, type AdminSubscription } from "./admin.ts";
import { type Open, type Published, type PublishOutcome, type ReceivedEvent, Stele, SteleError } from "./index.ts";
import { type ReceiverOptions, toNodeHandler, verifyWebhook, type Webhook } from "./webhook/index.ts";

// `npm run check` compiles these assertions; they never run.
const written = (_assertions: (stele: Stele) => unknown): void => {};

function readOutcome(outcome: PublishOutcome): unknown {
  if (outcome.status === "published") {
    expectTypeOf(outcome.eventId).toBeString();
    // @ts-expect-error A published event has no error.
    return outcome.error;
  }
  return expectTypeOf(outcome.error).toEqualTypeOf<SteleError>();
}

function readFailure(error: unknown): number | undefined {
  if (!(error instanceof SteleError)) return undefined;
  expectTypeOf(error.code).toEqualTypeOf<number | undefined>();
  expectTypeOf(error.retry).toBeBoolean();
  return error.retryAfterMs;
}

describe("types of the client", () => {
  it("the types declare the parameters and results of calls", () => {
    written((stele) => {
      expectTypeOf(stele.publish("t", { a: 1 }, { once: true })).resolves.toEqualTypeOf<Published>();
      expectTypeOf(stele.publish).parameter(1).toEqualTypeOf<string | ArrayBuffer | ArrayBufferView | object>();
      expectTypeOf(stele.exist("t")).resolves.toBeBoolean();
      expectTypeOf(stele.getEvent("e")).resolves.toEqualTypeOf<ReceivedEvent>();
      // @ts-expect-error A number is not content: it could mean text or JSON.
      void stele.publish("t", 1);
      // @ts-expect-error There is no option `onec`.
      void stele.publish("t", "x", { onec: true });
      // @ts-expect-error `url` is required.
      return new Stele({ key: "k" });
    });
  });

  it("the type of an outcome is narrowed by its status", () => {
    expectTypeOf(readOutcome).parameter(0).toEqualTypeOf<PublishOutcome>();
  });

  it("the types make the events of a tail read-only", () => {
    written(async (stele) => {
      for await (const event of stele.subscribe(["a", "b/#"], {
        after: new Date(),
        signal: new AbortController().signal,
      })) {
        expectTypeOf(event).toEqualTypeOf<ReceivedEvent>();
        expectTypeOf(event.bytes()).toEqualTypeOf<Uint8Array<ArrayBuffer>>();
        expectTypeOf(event.json()).toBeUnknown();
        // @ts-expect-error An event is read-only.
        event.topic = "x";
      }
    });
  });

  it("the types allow values that only a newer broker knows", () => {
    written(async () => {
      const admin = new AdminClient({ url: "http://127.0.0.1:8080" });
      for await (const subscription of admin.subscriptions({ lagMin: 1 })) {
        expectTypeOf(subscription).toEqualTypeOf<Open<AdminSubscription>>();
        expectTypeOf(subscription.state).not.toEqualTypeOf<AdminSubscription["state"]>();
        expectTypeOf<"a later state">().toExtend<typeof subscription.state>();
      }
      // @ts-expect-error There is no order `stop`.
      void admin.order({ name: "stop" }, { all: true });
      // @ts-expect-error A target is required, even for all subscriptions.
      void admin.order({ name: "pause" });
    });
  });

  it("the types let every option of an admin call be undefined", () => {
    const absent = undefined;
    const common = { groupId: absent, kind: absent, owner: absent, node: absent, lagMin: absent };
    const places = { topic: absent, prefix: absent, matches: absent, host: absent };
    written(({ admin }) => [
      admin.subscriptions({ ...common, ...places, state: absent, failingMsMin: absent }, { limit: absent }),
      admin.sessions({ ...common, connected: absent }, { limit: absent }),
      admin.order({ name: "skip", to: absent, from: absent, eventId: absent, dryRun: absent }, "s"),
      admin.topics({ prefix: absent, filter: absent }),
      admin.events("t", { from: absent, before: absent, limit: absent }),
      admin.event("e", { proof: absent }),
      admin.skippedEntriesOf("1", { limit: absent }),
      admin.skippedEntries({ limit: absent }),
      admin.blocks({ below: absent, limit: absent }),
      admin.figures({ groupId: absent, signal: absent, traceparent: absent }),
    ]);
  });

  it("the types declare the fields of SteleError", () => {
    expectTypeOf(readFailure).returns.toEqualTypeOf<number | undefined>();
  });

  it("the types declare webhooks and the options of their handlers", () => {
    expectTypeOf(verifyWebhook).returns.resolves.toEqualTypeOf<Webhook>();
    expectTypeOf<Webhook["kind"]>().toEqualTypeOf<"event" | "batch" | "ping">();
    expectTypeOf<ReceiverOptions["onEvent"]>().parameters.toEqualTypeOf<[ReceivedEvent, Webhook]>();
    written(() => verifyWebhook("", { get: (_name: string): string | null => null }, "secret"));
    // @ts-expect-error `secret` is required.
    written(() => toNodeHandler({ onEvent: () => {} }));
  });
});
