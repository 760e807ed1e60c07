import type { Socket } from "node:net";
import { BrokerError } from "@stele/wire";
import type { Caller } from "../../engine/access/caller.ts";
import type { Broker, TailCall } from "../../engine/broker.ts";
import { inSlices } from "../../lib/time-slices.ts";
import { probeAfterMs } from "../shared/connection/limits.ts";
import type { UnreadBytes } from "../shared/connection/memory.ts";
import { createLoopSlices } from "../../lib/system/loop-slices.ts";
import { Encodings, type EncodingsOptions } from "./encodings.ts";
import { heartbeatMs, heartbeatTurns, retryMsMax, retryMsMin } from "./limits.ts";
import type { TailMetrics } from "./metrics.ts";
import { Tail } from "./tail.ts";
import type { TailRequest } from "./tail-request.ts";

export interface TailsOptions extends Pick<EncodingsOptions, "cloudEventType"> {
  /** Maximum number of open tails; the broker refuses further ones. */
  readonly tailsMax: number;
  /** Bytes that wait for slow clients, over all connections. */
  readonly unread: UnreadBytes;
  readonly metrics: TailMetrics;
  /** A new random number from 0 to below 1. */
  readonly random: () => number;
  /** Time between two heartbeats of a tail; {@link heartbeatMs} if left out. */
  readonly beatMs?: number | undefined;
}

export interface TailsParts extends TailsOptions, EncodingsOptions {
  readonly broker: Pick<Broker, "tail" | "authorize">;
}

interface Opening {
  readonly caller: Caller;
  readonly request: TailRequest;
  readonly socket: Socket;
  /** Writes the head of the answer. */
  readonly answer: () => void;
}

/** The tails of one listener. */
export class Tails {
  readonly #parts: TailsParts;
  readonly #encodings: Encodings;
  /** Tails that have begun, by the turn of their heartbeats. */
  readonly #turns: readonly Set<Tail>[] = Array.from({ length: heartbeatTurns }, () => new Set<Tail>());
  readonly #slices = createLoopSlices();
  readonly #timer: NodeJS.Timeout;
  /** Open tails, including those that have not begun yet. */
  #count = 0;
  #turn = 0;
  #isStopping = false;

  constructor(parts: TailsParts) {
    this.#parts = parts;
    this.#encodings = new Encodings(parts);
    parts.metrics.watchTails(() => this.#count);
    this.#timer = setInterval(() => this.#beat(), (parts.beatMs ?? heartbeatMs) / heartbeatTurns).unref();
  }

  /** Checks that the caller may open the tail, in slices: with many rules, each topic takes about 1 ms. @throws BrokerError as {@link Broker.authorize}. */
  async authorize(caller: Caller, { groupId, topics }: TailRequest): Promise<void> {
    const { broker } = this.#parts;
    await inSlices(topics, this.#slices, (topic) => broker.authorize(caller, "subscribe", { groupId, topic }));
  }

  /**
   * Begins a tail. Throws only before it has sent any part of the answer.
   * @throws BrokerError 200300 if too many tails are open or the broker stops; errors of {@link Broker.tail}.
   */
  async open({ caller, request, socket, answer }: Opening): Promise<void> {
    const { broker, tailsMax, unread, random } = this.#parts;
    if (this.#isStopping) throw new BrokerError("busy", { details: "the broker stops" });
    if (this.#count >= tailsMax)
      throw new BrokerError("busy", {
        details: `${tailsMax} tails are open at this node, and tailsMax allows no more`,
      });
    const turn = this.#turns[Math.floor(random() * heartbeatTurns)] ?? new Set<Tail>();
    const retryMs = Math.round(retryMsMin + random() * (retryMsMax - retryMsMin));
    const onEnded = (ended: Tail, why: string | undefined): void => {
      turn.delete(ended);
      this.#count -= 1;
      if (why !== undefined) this.#parts.metrics.tailEnded(why);
    };
    const tail = new Tail(socket, { request, encodings: this.#encodings, unread, retryMs, onEnded });
    this.#count += 1;
    let hasBegun = false;
    const onConnected: TailCall["onConnected"] = (session, start, origins) => {
      hasBegun = true;
      answer();
      socket.setKeepAlive(true, probeAfterMs);
      turn.add(tail);
      tail.begin(session, start, origins);
    };
    try {
      const { groupId, topics: filters, after, lastEventId } = request;
      tail.attached(await broker.tail(caller, { groupId, filters, after, lastEventId, onConnected }, tail));
    } catch (error) {
      if (hasBegun) return tail.end("failed");
      this.#count -= 1;
      throw error;
    }
    if (this.#isStopping) tail.end("stopping"); // it began meanwhile
  }

  /** Ends all tails, in slices; one that has not begun yet ends as soon as it begins. Their clients reconnect, here or to another node. */
  async endAll(): Promise<void> {
    this.#isStopping = true;
    clearInterval(this.#timer);
    const tails = this.#turns.flatMap((turn) => [...turn]);
    await inSlices(tails, this.#slices, (tail) => tail.end("stopping"));
  }

  #beat(): void {
    this.#turn = (this.#turn + 1) % heartbeatTurns;
    for (const tail of this.#turns[this.#turn] ?? []) tail.beat();
  }
}
