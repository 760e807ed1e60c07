import { Duplex } from "node:stream";
import { expect, it } from "vitest";
import { silentLogger } from "../../../lib/logger.ts";
import { TimeSlices } from "../../../lib/time-slices.ts";
import { anonymous, type Caller } from "../../../engine/access/caller.ts";
import { Connections } from "./connections.ts";

const opened = 1_000;
const caller: Caller = {
  principal: anonymous,
  address: "127.0.0.1",
  protocol: "MQTT",
  certificate: undefined,
  signal: new AbortController().signal,
};

it("ends thousands of connections in slices, and those that open meanwhile too", async () => {
  let [now, ended] = [0, 0];
  const turns: (() => void)[] = [];
  const connections = new Connections({
    protocol: "MQTT",
    logger: silentLogger,
    metrics: { watchConnections: () => {} },
    broker: { mayConnect: () => true },
    connectionsMax: opened + 1,
    connectTimeoutMs: 1_000,
    slices: new TimeSlices({ monotonic: () => now, soon: (action) => void turns.push(action) }),
    create: (_stream, _caller, onClosed) => {
      const connection = {
        endByStop: () => {
          now += 0.1; // ms
          ended += 1;
          onClosed(connection);
        },
      };
      return connection;
    },
  });
  const serve = (): void => connections.serve(new Duplex(), caller);
  for (let index = 0; index < opened; index += 1) serve();
  const ending = connections.endAll();
  expect(ended).toBeLessThan(opened / 10);
  serve();
  while (turns.length > 0) {
    const before = ended;
    for (const action of turns.splice(0)) action();
    for (let step = 0; step < 4; step += 1) await Promise.resolve();
    expect(ended - before).toBeLessThan(opened / 10);
  }
  await ending;
  expect(ended).toBe(opened + 1);
});
