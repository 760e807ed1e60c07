import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { answerSliceBytes, pipelinedRequestBytes, smallBytesMax } from "../limits.ts";
import { resetConnection } from "../shared/reset-connection.ts";
import { AnswerStream } from "./answer-stream.ts";
import type { Holding, MemoryBudget } from "./memory-budget.ts";
import { runPipelined } from "./pipelining.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** The response to this request. */
    response: ServerResponse;
    /** Memory of its long body, its long answer and its wait behind other requests; undefined while there is none. */
    holding: Holding | undefined;
  }
}

/** Finds or creates the holding of a request, which counts the request's memory against the budget. */
export type FindHolding = (request: FastifyRequest) => Holding;

/** Counts long bodies and answers against one budget, and limits the waiting requests of each connection. */
export function registerInFlight(app: FastifyInstance, budget: MemoryBudget): FindHolding {
  const holdings = new Holdings(budget);
  const findHolding: FindHolding = (request) => holdings.of(request);
  app.decorateRequest("response");
  app.decorateRequest("holding", undefined);
  app.addHook("onRequest", (request, reply, done) => {
    request.response = reply.raw;
    // Node gives a response its socket once all earlier responses are finished.
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

/** Releases a holding when its response or its connection closes: a response that waits behind another emits no `close`. */
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

  /** Ends a connection whose next request can neither run nor wait. */
  end(socket: Socket): void {
    if (!socket.destroyed) this.#budget.endConnection(socket);
  }

  #create({ raw, response }: FastifyRequest): Holding {
    const holding = this.#budget.createHolding();
    if (raw.socket.destroyed) {
      // The close event has already fired, so nothing else would release the holding.
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

/** Whether earlier answers go first. Answers that wait behind them add up, even short ones. */
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

/** Takes memory for a request that waits behind earlier ones; false if there is none. Sets the client a deadline to read the earlier answers. */
function takeMemoryOfWaiting(holding: Holding, reply: FastifyReply): boolean {
  if (!holding.tryTake(pipelinedRequestBytes)) return false;
  awaitReader(holding, reply);
  return true;
}

function sendInSlices(stream: AnswerStream, reply: FastifyReply, done: Done): void {
  // Nobody reads this answer, and Fastify would report the early end of the stream as an error.
  if (reply.request.raw.socket.destroyed) return done(null, "");
  awaitReader(stream.holding, reply);
  reply.header("content-length", stream.bytes);
  done(null, stream);
}

/** Sets the client a deadline to read. Past it, resets the connection, so that the system drops its buffers too. */
function awaitReader(holding: Holding, { request }: FastifyReply): void {
  const { response, raw } = request;
  const { socket } = raw;
  const flushedBytes = (): number => socket.bytesWritten - socket.writableLength;
  let seen = flushedBytes();
  holding.awaitClient({
    socket,
    end: () => resetConnection(socket),
    // A waiting answer is excused while earlier answers do not exist yet, or while the client reads them.
    isExcused: () => {
      if (response.socket !== null) return false;
      const before = seen;
      seen = flushedBytes();
      return socket.writableLength === 0 || seen > before;
    },
  });
}
