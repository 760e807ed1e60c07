import { connect } from "node:net";
import { expect, it } from "vitest";
import type { Broker } from "../../../engine/broker.ts";
import { serve } from "../../testing/serve.ts";
import { whenClosed } from "../../testing/when-closed.ts";

it("closes a connection that the broker does not take, unread, and serves those that it takes", async () => {
  const asked: (string | undefined)[] = [];
  let isTaken = false;
  const mayConnect: Broker["mayConnect"] = (findAddress) => {
    asked.push(findAddress());
    return isTaken;
  };
  await using server = await serve({ mayConnect });
  const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
  const closed = whenClosed(socket);
  socket.write("GET /rest/exist?topic=a HTTP/1.1\r\nhost: localhost\r\n\r\n");
  await closed;
  expect([asked, socket.bytesRead, server.calls]).toEqual([["127.0.0.1"], 0, []]);
  isTaken = true;
  const answer = await fetch(`${server.url}/rest/exist?topic=a`);
  expect(await answer.json()).toBe(true);
});
