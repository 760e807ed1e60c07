import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { pipelinedRunningMax, pipelinedWaitingMax } from "../limits.ts";

/** Requests of one connection that came before earlier ones were answered. */
interface Pipeline {
  running: number;
  waiting: number;
}

const pipelines = new WeakMap<Socket, Pipeline>();
/** Connections whose answer takes them whole. */
const taken = new WeakSet<Socket>();

export interface PipelinedRequest {
  readonly run: () => void;
  /** Called when the request must wait; false when there is no memory for that. */
  readonly wait: () => boolean;
}

/**
 * Runs a request that came before earlier ones of its connection were answered: at once for a few, the others when all in front of them are
 * answered and their answers are on the wire. So the answers that wait for a client that does not read are few. False when too many wait, or
 * when the answer in front does not end: Node goes on reading requests, whatever the number of those that are not answered, so the connection must end.
 */
export function runPipelined(response: ServerResponse, { run, wait }: PipelinedRequest): boolean {
  const { socket } = response.req;
  if (taken.has(socket)) return false;
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
 * Gives the whole connection to one answer that does not end: a request behind it would never be answered, so it ends the connection. Undefined where
 * another request is in front of it or behind it already; else gives the connection back.
 */
export function takeConnection(response: ServerResponse): (() => void) | undefined {
  const { socket } = response;
  if (socket === null || !isAlone(response)) return undefined;
  taken.add(socket);
  return () => void taken.delete(socket);
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
