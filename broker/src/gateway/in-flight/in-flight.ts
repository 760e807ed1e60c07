import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { answerSliceBytes, pipelinedRequestBytes, smallBytesMax } from "../limits.ts";
import { AnswerStream } from "./answer-stream.ts";
import type { Holding, MemoryBudget } from "./memory-budget.ts";
import { runPipelined } from "./pipelining.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** The answer to it. */
    response: ServerResponse;
    /** Memory of its long body and answer; undefined while both are short. */
    holding: Holding | undefined;
  }
}

/** The memory that a request with a long body or answer takes. */
export type FindHolding = (request: FastifyRequest) => Holding;

/** Counts long bodies and answers against one budget, and bounds what one connection can have waiting. */
export function registerInFlight(app: FastifyInstance, budget: MemoryBudget): FindHolding {
  const holdings = new Holdings(budget);
  const findHolding: FindHolding = (request) => holdings.of(request);
  app.decorateRequest("response");
  app.decorateRequest("holding", undefined);
  app.addHook("onRequest", (request, reply, done) => {
    request.response = reply.raw;
    // A response has no socket as long as another one is in front of it.
    if (reply.raw.socket !== null) return done();
    const run = (): void => {
      request.holding?.awaitBroker();
      done();
    };
    const wait = (): boolean => takeMemoryOfWaiting(holdings.of(request), reply);
    if (!runPipelined(reply.raw, { run, wait })) holdings.end(request.raw.socket);
  });
  app.addHook("onSend", (...[request, reply, payload, done]) => {
    if (isText(payload) && (payload.length > smallBytesMax || isBehind(request)))
      sendLong(Buffer.from(payload), { reply, holding: holdings.of(request), done });
    else if (payload instanceof AnswerStream) sendInSlices(payload, reply, done);
    else done(null, payload);
  });
  return findHolding;
}

/** A holding ends with its answer or with its connection: Node does not report the end of a connection to a response that waits behind another. */
class Holdings {
  readonly #budget: MemoryBudget;
  readonly #byConnection = new WeakMap<Socket, Set<Holding>>();

  constructor(budget: MemoryBudget) {
    this.#budget = budget;
  }

  of(request: FastifyRequest): Holding {
    request.holding ??= this.#create(request);
    return request.holding;
  }

  /** Ends a connection that has too much waiting. */
  end(socket: Socket): void {
    if (!socket.destroyed) this.#budget.endConnection(socket);
  }

  #create({ raw, response }: FastifyRequest): Holding {
    const holding = this.#budget.createHolding();
    if (raw.socket.destroyed) {
      // Its close event is over: nobody would release this.
      holding.release();
      return holding;
    }
    const ofConnection = this.#byConnection.get(raw.socket) ?? this.#watch(raw.socket);
    ofConnection.add(holding);
    response.once("close", () => {
      ofConnection.delete(holding);
      holding.release();
    });
    return holding;
  }

  #watch(socket: Socket): Set<Holding> {
    const holdings = new Set<Holding>();
    this.#byConnection.set(socket, holdings);
    socket.once("close", () => {
      for (const holding of holdings) holding.release();
    });
    return holdings;
  }
}

type Done = (error: null, payload: unknown) => void;

function isText(payload: unknown): payload is string | Buffer {
  return typeof payload === "string" || payload instanceof Buffer;
}

/** Whether other answers go first. Answers behind them add up, however short they are. */
function isBehind({ response }: FastifyRequest): boolean {
  return response.socket === null;
}

function sendLong(
  bytes: Buffer,
  { reply, holding, done }: { readonly reply: FastifyReply; readonly holding: Holding; readonly done: Done },
): void {
  holding.take(bytes.length);
  if (bytes.length > answerSliceBytes) return sendInSlices(new AnswerStream([bytes], holding), reply, done);
  awaitReader(holding, reply);
  done(null, bytes);
}

/** False where there is none. A client that takes no answers meanwhile is ended. */
function takeMemoryOfWaiting(holding: Holding, reply: FastifyReply): boolean {
  if (!holding.tryTake(pipelinedRequestBytes)) return false;
  awaitReader(holding, reply);
  return true;
}

function sendInSlices(stream: AnswerStream, reply: FastifyReply, done: Done): void {
  awaitReader(stream.holding, reply);
  reply.header("content-length", stream.bytes);
  done(null, stream);
}

/** The connection is reset, so that the system keeps nothing for the client either. */
function awaitReader(holding: Holding, { request }: FastifyReply): void {
  const { response, raw } = request;
  const { socket } = raw;
  const flushedBytes = (): number => socket.bytesWritten - socket.writableLength;
  let seen = flushedBytes();
  holding.awaitClient({
    socket,
    end: () => socket.resetAndDestroy(),
    // An answer behind others waits for those that are not made yet, and while the client takes what is in front.
    isExcused: () => {
      if (response.socket !== null) return false;
      const before = seen;
      seen = flushedBytes();
      return socket.writableLength === 0 || seen > before;
    },
  });
}
