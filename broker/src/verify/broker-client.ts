import {
  type EventBody,
  errorCatalogue,
  eventSchema,
  proofSchema,
  type Proof,
  type TopicState,
  topicStateSchema,
} from "@stele/wire";
import * as z from "zod";
import { askJson } from "./http.ts";
import { Unverifiable } from "./unverifiable.ts";

/** The chain of a group, as its broker reports it. */
export interface GroupChain {
  readonly groupId: string;
  readonly chainId: number;
  readonly genesisHash: string;
}

// An older broker omits some of these fields, and so does one whose group has not started.
const indexSchema = z.object({ defaultGroup: z.string() });
const readinessSchema = z.object({
  groups: z.array(
    z.object({
      groupId: z.string(),
      chain: z.object({ chainId: z.int(), genesisHash: z.string() }).optional().catch(undefined),
    }),
  ),
});

/** A broker's error (docs/rest.md). */
const failureSchema = z.object({ code: z.int(), message: z.string() });

/** Longest answer with one event: the maximum content and extensions, as JSON. Several requests run at once. */
const eventBytesMax = 25_165_824;

const { eventNotExist, eventBeyondHead, topicNotExist } = errorCatalogue;

/** The broker under test, over REST like any other client. @throws Unverifiable if it does not answer. */
export class BrokerClient {
  readonly #base: string;
  readonly #group: string | undefined;

  constructor({ broker, group }: { readonly broker: string; readonly group: string | undefined }) {
    this.#base = broker;
    this.#group = group?.trim() || undefined;
  }

  async getProof(eventId: string): Promise<Proof> {
    const answer = await this.#ask("proof", { eventId });
    return this.#read(answer, proofSchema);
  }

  /** Undefined when the broker does not have the event. */
  async findEvent(eventId: string): Promise<EventBody | undefined> {
    const answer = await this.#ask("getEvent", { eventId }, eventBytesMax);
    const code = findFailure(answer)?.code;
    if (code === eventNotExist.code || code === eventBeyondHead.code) return undefined;
    return this.#read(answer, eventSchema);
  }

  /** Undefined when the broker does not have the topic. */
  async findTopic(topic: string): Promise<TopicState | undefined> {
    const answer = await this.#ask("state", { topic });
    if (findFailure(answer)?.code === topicNotExist.code) return undefined;
    return this.#read(answer, topicStateSchema);
  }

  /** Undefined if the broker does not report it. */
  async findGroupChain(): Promise<GroupChain | undefined> {
    const groupId = this.#group ?? indexSchema.safeParse(await this.#get("/")).data?.defaultGroup;
    const readiness = readinessSchema.safeParse(await this.#get("/health/ready"));
    const chain = readiness.data?.groups.find((group) => group.groupId === groupId)?.chain;
    return groupId === undefined || chain === undefined ? undefined : { groupId, ...chain };
  }

  /** Undefined for a page that does not exist, or is not public. */
  async #get(path: string): Promise<unknown> {
    try {
      return await askJson({ url: `${this.#base}${path}`, name: `the broker at ${this.#base}` });
    } catch (error) {
      if (error instanceof Unverifiable) return undefined;
      throw error;
    }
  }

  #ask(operation: string, parameters: Readonly<Record<string, string>>, answerBytesMax?: number): Promise<unknown> {
    const group: Readonly<Record<string, string>> = this.#group === undefined ? {} : { groupId: this.#group };
    return askJson({
      url: `${this.#base}/rest/${operation}`,
      body: { ...parameters, ...group },
      name: `the broker at ${this.#base}`,
      ...(answerBytesMax === undefined ? {} : { answerBytesMax }),
    });
  }

  #read<Result>(answer: unknown, schema: z.ZodType<Result>): Result {
    const failure = findFailure(answer);
    if (failure !== undefined) throw new Unverifiable(`the broker refuses: ${failure.code} ${failure.message}`);
    const result = schema.safeParse(answer);
    if (result.success) return result.data;
    throw new Unverifiable(`the server at ${this.#base} does not answer like a broker`);
  }
}

/** Undefined for an answer that is not an error. */
function findFailure(answer: unknown): z.infer<typeof failureSchema> | undefined {
  return failureSchema.safeParse(answer).data;
}
