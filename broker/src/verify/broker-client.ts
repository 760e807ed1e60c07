import {
  type EventBody,
  errorCatalogue,
  eventSchema,
  proofSchema,
  type Proof,
  type TopicState,
  topicStateSchema,
} from "@stele/wire";
import type * as z from "zod";
import { askJson } from "./http.ts";
import { Unverifiable } from "./unverifiable.ts";

const { eventNotExist, eventBeyondHead, topicNotExist } = errorCatalogue;

/** The broker that is asked what it has, over REST like any other client. @throws Unverifiable where it gives no such answer. */
export class BrokerClient {
  readonly #base: string;
  readonly #group: string | undefined;

  constructor({ broker, group }: { readonly broker: string; readonly group: string | undefined }) {
    this.#base = broker;
    this.#group = group;
  }

  async getProof(eventId: string): Promise<Proof> {
    const answer = await this.#ask("proof", { eventId });
    return this.#read(answer, proofSchema);
  }

  /** Undefined when the broker does not have the event. */
  async findEvent(eventId: string): Promise<EventBody | undefined> {
    const answer = await this.#ask("getEvent", { eventId });
    if (isFailure(answer) && (answer.code === eventNotExist.code || answer.code === eventBeyondHead.code))
      return undefined;
    return this.#read(answer, eventSchema);
  }

  /** Undefined when the broker does not have the topic. */
  async findTopic(topic: string): Promise<TopicState | undefined> {
    const answer = await this.#ask("state", { topic });
    if (isFailure(answer) && answer.code === topicNotExist.code) return undefined;
    return this.#read(answer, topicStateSchema);
  }

  #ask(operation: string, parameters: Readonly<Record<string, string>>): Promise<unknown> {
    const group: Readonly<Record<string, string>> = this.#group === undefined ? {} : { groupId: this.#group };
    return askJson({
      url: `${this.#base}/rest/${operation}`,
      body: { ...parameters, ...group },
      name: `the broker at ${this.#base}`,
    });
  }

  #read<Result>(answer: unknown, schema: z.ZodType<Result>): Result {
    if (isFailure(answer)) throw new Unverifiable(`the broker refuses: ${answer.code} ${answer.message}`);
    const result = schema.safeParse(answer);
    if (result.success) return result.data;
    throw new Unverifiable(`what listens at ${this.#base} does not answer as a broker does`);
  }
}

function isFailure(answer: unknown): answer is { readonly code: number; readonly message: string } {
  return typeof answer === "object" && answer !== null && "code" in answer && "message" in answer;
}
