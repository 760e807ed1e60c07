import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { pipelinedRunningMax, pipelinedWaitingMax } from "../limits.ts";

/** Requests of one connection that came before earlier ones were answered. */
interface Pipeline {
  running: number;
  waiting: number;
}

const pipelines = new WeakMap<Socket, Pipeline>();

export interface PipelinedRequest {
  readonly run: () => void;
  /** Called when the request must wait; false when there is no memory for that. */
  readonly wait: () => boolean;
}

/**
 * Runs a request that came before earlier ones of its connection were answered: at once for a few, the others when all in front of them are
 * answered and their answers are on the wire. So the answers that wait for a client that does not read are few. False when too many wait:
 * Node goes on reading requests, whatever the number of those that are not answered, so the connection must end.
 */
export function runPipelined(response: ServerResponse, { run, wait }: PipelinedRequest): boolean {
  const pipeline = pipelineOf(response.req.socket);
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

function pipelineOf(socket: Socket): Pipeline {
  const known = pipelines.get(socket);
  if (known !== undefined) return known;
  const pipeline = { running: 0, waiting: 0 };
  pipelines.set(socket, pipeline);
  return pipeline;
}
