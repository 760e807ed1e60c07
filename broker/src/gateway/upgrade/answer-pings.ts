import type { WebSocket } from "ws";

/**
 * Answers pings, for a server whose `autoPong` is off. While an answer waits for the client to read, only the newest ping is kept (RFC 6455,
 * section 5.5.3): a client that sends pings and reads nothing would fill the memory with answers.
 */
export function answerPings(webSocket: WebSocket): void {
  let isAnswering = false;
  let newest: Buffer | undefined;
  const answer = (data: Buffer): void => {
    isAnswering = true;
    webSocket.pong(data, false, () => {
      isAnswering = false;
      const next = newest;
      newest = undefined;
      if (next !== undefined) answer(next);
    });
  };
  webSocket.on("ping", (data) => {
    if (isAnswering) newest = data;
    else answer(data);
  });
}
