import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { pipelinedRunningMax } from "../limits.ts";

/** Requests of each connection that run though others in front of them are not answered. */
const runningAhead = new WeakMap<Socket, number>();

/**
 * Calls `run` for a request that came before earlier ones of its connection were answered: at once for a few, for the others when all in front
 * of them are answered and their answers are on the wire. So the answers that wait for a client that does not read are few.
 */
export function runPipelined(response: ServerResponse, run: () => void): void {
  const { socket } = response.req;
  const running = runningAhead.get(socket) ?? 0;
  if (running >= pipelinedRunningMax) {
    response.once("socket", () => run());
    return;
  }
  runningAhead.set(socket, running + 1);
  response.once("socket", () => runningAhead.set(socket, (runningAhead.get(socket) ?? 1) - 1));
  run();
}
