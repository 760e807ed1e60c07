import { connect } from "node:net";
import { describeNetworkFailure } from "../../../lib/network-failure.ts";
import type { EndpointAddress } from "./address.ts";
import { answerBytesMax } from "./answer.ts";
import type { Channel, ChannelEvents } from "./channel.ts";
import { EndpointError, type Reach } from "./endpoint-error.ts";
import { JsonFrames } from "./json-frames.ts";

/** Opens a chain node's Unix socket, which carries a sequence of JSON objects. */
export function openIpc(address: EndpointAddress, events: ChannelEvents): Channel {
  const socket = connect(address.text.slice("ipc:".length));
  const frames = new JsonFrames(answerBytesMax);
  let reason = "the connection was closed";
  let reach: Reach = "unreached";
  socket.on("connect", () => {
    reach = "unknown";
    events.onOpen();
  });
  socket.on("data", (chunk: Buffer) => {
    try {
      for (const text of frames.push(chunk)) events.onMessage(text);
    } catch (error) {
      socket.destroy(error instanceof RangeError ? error : undefined);
    }
  });
  socket.on("error", (error) => {
    if (error instanceof RangeError) reach = "answer-too-long";
    reason = error instanceof RangeError ? error.message : describeNetworkFailure(error);
  });
  socket.on("close", () => {
    events.onClose(new EndpointError(`${address.name}: ${reason}`, { reach }));
  });
  return {
    send: (text) => void socket.write(text),
    close: () => socket.destroy(),
  };
}
