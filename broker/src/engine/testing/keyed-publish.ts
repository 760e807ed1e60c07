import { type ErrorName, errorCatalogue } from "@stele/wire";
import { expect } from "vitest";
import type { PublishCall, PublishResult } from "../broker.ts";
import { publish } from "./publish.ts";
import type { TestEngine } from "./test-engine.ts";

/** Virtual time after which each publish of a test has its answer, in milliseconds. */
const answeredAfterMs = 70_000;

export const keyedTopic = { topic: "a", groupId: undefined };

/** A publish to {@link keyedTopic} under a key. */
export function keyedCall(key: string | undefined, text = "text", change: Partial<PublishCall> = {}): PublishCall {
  return { ...keyedTopic, content: new TextEncoder().encode(text), extensions: [], key, ...change };
}

/** A matcher for an error of the catalogue. */
export function refusal(name: ErrorName): unknown {
  return expect.objectContaining({ code: errorCatalogue[name].code });
}

/** Publishes, and advances virtual time until the answer. */
export async function sendKeyed(engine: TestEngine, call: PublishCall): Promise<PublishResult> {
  const answer = publish(engine.broker, call);
  answer.catch(() => {});
  await engine.clock.advance(answeredAfterMs);
  return answer;
}
