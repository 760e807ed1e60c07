import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { pipelinedRunningMax, pipelinedWaitingMax } from "../limits.ts";

/** Requests of one connection that came before earlier ones were answered. */
interface Pipeline {
  running: number;
  waiting: number;
}

const pipelines = new WeakMap<Socket, Pipeline>();
/** Connections reserved for an answer that does not end. */
const reserved = new WeakSet<Socket>();

export interface PipelinedRequest {
  readonly run: () => void;
  /** Called when the request must wait; returns false if there is no memory for that. */
  readonly wait: () => boolean;
}

/**
 * Runs a request that arrived before earlier ones of its connection were answered. A few run at once. The others wait until all earlier answers are sent, so
 * that few answers pile up for a client that does not read. Returns false if too many requests wait, if there is no memory, or if the answer in front never
 * ends. The caller must then end the connection, because Node would continue to read requests.
 */
export function runPipelined(response: ServerResponse, { run, wait }: PipelinedRequest): boolean {
  const { socket } = response.req;
  if (reserved.has(socket)) return false;
  const pipeline = pipelineOf(socket);
  if (pipeline.running < pipelinedRunningMax) {
    pipeline.running += 1;
    response.once("socket", () => {
      pipeline.running -= 1;
    });
    run();
    return true;
  }
  if (pipeline.waiting >= pipelinedWaitingMax || !wait()) return false;
  pipeline.waiting += 1;
  response.once("socket", () => {
    pipeline.waiting -= 1;
    run();
  });
  return true;
}

/**
 * Reserves the connection for an answer that does not end. A later request could never be answered, so it ends the connection. Returns a function
 * that releases the connection; undefined if another request of the connection is unanswered.
 */
export function reserveConnection(response: ServerResponse): (() => void) | undefined {
  const { socket } = response;
  if (socket === null || !isAlone(response)) return undefined;
  reserved.add(socket);
  return () => void reserved.delete(socket);
}

/** Whether no other request of its connection waits for its answer. */
export function isAlone({ req }: ServerResponse): boolean {
  const { running, waiting } = pipelineOf(req.socket);
  return running + waiting === 0;
}

function pipelineOf(socket: Socket): Pipeline {
  const known = pipelines.get(socket);
  if (known !== undefined) return known;
  const pipeline = { running: 0, waiting: 0 };
  pipelines.set(socket, pipeline);
  return pipeline;
}
