import { expect, it } from "vitest";
import { VirtualClock } from "../../../ports/testing/virtual-clock.ts";
import { EndpointAddress } from "./address.ts";
import type { ChannelEvents } from "./channel.ts";
import { SocketConnection } from "./socket-connection.ts";

const requestsMax = 1024;

it("refuses a request while 1,024 are in progress, even before its channel is open", async () => {
  const sent: string[] = [];
  let channel: ChannelEvents | undefined;
  const connection = new SocketConnection(new EndpointAddress("ws://127.0.0.1:1"), {
    clock: new VirtualClock(),
    events: { onNotification: () => {}, onLost: () => {} },
    open: (events) => {
      channel = events;
      return { send: (text) => void sent.push(text), close: () => {} };
    },
  });
  const ask = (): Promise<unknown> => connection.request({ method: "eth_blockNumber" });
  const early = Array.from({ length: requestsMax }, ask);
  const refused = (): Promise<boolean> =>
    ask().then(
      () => false,
      () => true,
    );
  const tooMany = [refused()];
  channel?.onOpen();
  while (sent.length === 0) {
    tooMany.push(refused());
    await Promise.resolve();
  }
  tooMany.push(refused());
  await new Promise((resolve) => setImmediate(resolve));
  expect(sent).toHaveLength(requestsMax);
  expect(new Set(await Promise.all(tooMany))).toEqual(new Set([true]));
  for (const text of sent) {
    const { id } = JSON.parse(text) as { id: number };
    channel?.onMessage(JSON.stringify({ jsonrpc: "2.0", id, result: "0x1" }));
  }
  expect(new Set(await Promise.all(early))).toEqual(new Set(["0x1"]));
  await connection.close();
});
