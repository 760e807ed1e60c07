import { WebSocket } from "ws";
import { describeNetworkFailure, isBeforeConnection } from "../../../lib/network-failure.ts";
import { parseRetryAfter } from "../../../lib/retry-after.ts";
import type { EndpointAddress } from "./address.ts";
import { answerBytesMax, connectTimeoutMs } from "./answer.ts";
import type { Channel, ChannelEvents } from "./channel.ts";
import { EndpointError, type Reach } from "./endpoint-error.ts";

export function openWebSocket(address: EndpointAddress, events: ChannelEvents): Channel {
  const { protocol, host, pathname, search } = new URL(address.text);
  const socket = new WebSocket(`${protocol}//${host}${pathname}${search}`, {
    headers: address.headers,
    handshakeTimeout: connectTimeoutMs,
    maxPayload: answerBytesMax,
    perMessageDeflate: false,
  });
  let failure: EndpointError | undefined;
  let isOpen = false;
  socket.on("open", () => {
    isOpen = true;
    events.onOpen();
  });
  socket.on("message", (data: Buffer) => events.onMessage(data.toString())); // A buffer, by the default of `binaryType`.
  socket.on("unexpected-response", (_, response) => {
    const retryAfterMs = parseRetryAfter(response.headers["retry-after"], Date.now());
    failure ??= new EndpointError(`${address.name}: answered HTTP ${response.statusCode}`, {
      reach: "unreached",
      retryAfterMs,
      isOverLimit: response.statusCode === 429,
    });
    socket.terminate();
  });
  socket.on("error", (error) => {
    failure ??= new EndpointError(`${address.name}: ${describeError(error)}`, { reach: reachOf(error, isOpen) });
  });
  socket.on("close", (code) => {
    const reach = isOpen ? "unknown" : "unreached";
    events.onClose(
      failure ?? new EndpointError(`${address.name}: the connection was closed (WebSocket code ${code})`, { reach }),
    );
  });
  return {
    send: (text) => socket.send(text),
    close: () => socket.terminate(),
  };
}

function reachOf(error: Error, isOpen: boolean): Reach {
  if (isTooLong(error)) return "answer-too-long";
  return isOpen && !isBeforeConnection(error) ? "unknown" : "unreached";
}

function isTooLong(error: Error): boolean {
  return "code" in error && error.code === "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH";
}

function describeError(error: Error): string {
  if (isTooLong(error)) return `the answer is longer than ${answerBytesMax} bytes`;
  return error.message.includes("Opening handshake has timed out")
    ? `no connection within ${connectTimeoutMs} ms`
    : describeNetworkFailure(error);
}
