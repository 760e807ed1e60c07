import { Stele, SteleError } from "@stele/client";
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
import { textBytesMaxDefault } from "./collect-text.ts";
import { answerTimeoutMs, askJson } from "./http.ts";
import { AnswerTooLong, Unverifiable } from "./unverifiable.ts";

/** The chain of a group, as its broker reports it. */
export interface GroupChain {
  readonly groupId: string;
  readonly chainId: number;
  readonly genesisHash: string;
}

// An older broker omits some of these fields, and so does a broker whose group has not started.
const indexSchema = z.object({ defaultGroup: z.string() });
const readinessSchema = z.object({
  groups: z.array(
    z.object({
      groupId: z.string(),
      chain: z.object({ chainId: z.int(), genesisHash: z.string() }).optional().catch(undefined),
    }),
  ),
});

/** Longest answer with one event: the maximum content and extensions, as JSON. Smaller than the default limit, because many such requests run at once. */
const eventBytesMax = 25_165_824;

/** The broker has not read the event's block yet: it may not be final. */
export const unread = Symbol("unread");

const { eventNotExist, eventBeyondHead, topicNotExist } = errorCatalogue;

export interface BrokerOptions {
  readonly broker: string;
  /** Key or token that the broker asks for. */
  readonly key: (() => string) | undefined;
  readonly group: string | undefined;
}

/** Calls the broker under test as any client does, and checks each answer's form. @throws Unverifiable if the broker refuses, or gives no valid answer. */
export class BrokerClient {
  readonly #options: BrokerOptions;
  readonly #name: string;
  readonly #stele: Stele;
  /** The client for answers with one event. Makes no retries once the broker has called an event unread: the broker may say so of thousands. */
  #events: Stele;

  constructor(options: BrokerOptions) {
    this.#options = options;
    this.#name = `the broker at ${options.broker}`;
    this.#stele = this.#toClient(textBytesMaxDefault);
    this.#events = this.#toClient(eventBytesMax);
  }

  async getProof(eventId: string): Promise<Proof> {
    return this.#ask(() => this.#stele.getProof(eventId), proofSchema);
  }

  /** The event; undefined if the broker does not have it; {@link unread} if the broker says that it has not read the event's block yet. */
  async findEvent(eventId: string): Promise<EventBody | typeof unread | undefined> {
    const found = await this.#find(
      () => this.#events.getEvent(eventId),
      eventSchema.or(z.custom<typeof unread>((answer) => answer === unread)),
      [
        [eventNotExist, undefined],
        [eventBeyondHead, unread],
      ],
    );
    if (found === unread) this.#events = this.#toClient(eventBytesMax, { retries: 0 });
    return found;
  }

  /** The topic's state; undefined if the broker does not have the topic. */
  async findTopic(topic: string): Promise<TopicState | undefined> {
    return this.#find(() => this.#stele.state(topic), topicStateSchema, [[topicNotExist, undefined]]);
  }

  /** The chain of the group; undefined if the broker does not report it. */
  async findGroupChain(): Promise<GroupChain | undefined> {
    const group = this.#options.group ?? indexSchema.safeParse(await this.#getIndex()).data?.defaultGroup;
    const readiness = await this.#stele.readiness().catch(() => undefined); // Readiness may be for admins only.
    const { groups = [] } = readinessSchema.safeParse(readiness).data ?? {};
    const chain = groups.find(({ groupId }) => groupId === group)?.chain;
    return group === undefined || chain === undefined ? undefined : { groupId: group, ...chain };
  }

  /** The page that names the default group; undefined if the broker does not return it. */
  async #getIndex(): Promise<unknown> {
    try {
      return await askJson({ url: `${this.#options.broker}/`, name: this.#name, key: this.#options.key });
    } catch (error) {
      if (error instanceof Unverifiable) return undefined;
      throw error;
    }
  }

  async #find<Result>(
    call: () => Promise<unknown>,
    schema: z.ZodType<Result>,
    answers: readonly (readonly [{ readonly code: number }, unknown])[],
  ): Promise<Result | undefined> {
    const caught = (error: unknown): unknown => {
      const found = answers.find(([{ code }]) => error instanceof SteleError && code === error.code);
      if (found !== undefined) return found[1];
      throw error;
    };
    return this.#ask(() => call().catch(caught), schema.optional());
  }

  async #ask<Result>(call: () => Promise<unknown>, schema: z.ZodType<Result>): Promise<Result> {
    const answer = await call().catch((error: unknown) => {
      throw this.#toUnverifiable(error);
    });
    const result = schema.safeParse(answer);
    if (result.success) return result.data;
    throw new Unverifiable(`the server at ${this.#options.broker} does not answer like a broker`);
  }

  #toUnverifiable(error: unknown): unknown {
    if (!(error instanceof SteleError)) return error;
    if (error.cause instanceof AnswerTooLong) return error.cause;
    if (error.code === undefined) return new Unverifiable(error.message);
    return new Unverifiable(`the broker refuses: ${error.code} ${error.message}`);
  }

  #toClient(bytesMax: number, more: { readonly retries?: number } = {}): Stele {
    const { broker, key, group } = this.#options;
    const options = { url: broker, key, groupId: group, timeoutMs: answerTimeoutMs };
    const fetch: typeof globalThis.fetch = (url, init) => fetchBounded(url, init, { name: this.#name, bytesMax });
    return new Stele({ ...options, ...more, fetch });
  }
}

/** Like `fetch`, but limits the answer, which may never end. Its body throws a SteleError caused by AnswerTooLong, not to be retried. */
async function fetchBounded(
  url: Parameters<typeof fetch>[0],
  init: RequestInit | undefined,
  { name, bytesMax }: { readonly name: string; readonly bytesMax: number },
): Promise<Response> {
  const response = await fetch(url, init);
  let bytes = 0;
  // The client reads the body, so that it reports a broken answer as such.
  const bounded = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform: (chunk, controller) => {
      bytes += chunk.length;
      if (bytes <= bytesMax) return controller.enqueue(chunk);
      const cause = new AnswerTooLong(`${name} returned more than ${bytesMax} bytes`);
      throw new SteleError(cause.message, { retry: false, cause });
    },
  });
  return response.body === null ? response : new Response(response.body.pipeThrough(bounded), response);
}
