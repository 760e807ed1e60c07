import { beforeAll, describe, expect, it } from "vitest";
import { apiNames, apiOver, type Params } from "../harness/apis.ts";
import { useWorld } from "../harness/use.ts";
import { embeddedWorld } from "../harness/world.ts";
import { badCalls } from "./bad-values.ts";
import { takeSnapshot } from "./unchanged.ts";

// Bad values change nothing, so all APIs share one broker.
const running = useWorld(embeddedWorld);
let eventId = "";
let before: unknown;
beforeAll(async () => {
  const { client } = running();
  await client.open("bad");
  await client.open("bad/closed");
  ({ eventId } = await client.publish("bad", "an event"));
  await client.publish("bad/closed", "an event");
  await client.close("bad/closed");
  await client.subscribe({ topic: "bad", url: "http://127.0.0.1:65535/" });
  before = await takeSnapshot(client);
});

describe.each(apiNames)("a bad value sent by %s", (apiName) => {
  const calls = badCalls.filter(({ isLong }) => isLong !== true || !/GET|query/.test(apiName));

  it.each(calls.map((call) => [call.operation, call.what, call] as const))(
    "%s with %s returns its documented code and changes nothing",
    async (operation, _what, call) => {
      const { client } = running();
      const api = apiOver(client.http, apiName);
      const params: Params = call.params.eventId === "{event}" ? { ...call.params, eventId } : call.params;
      const outcome = await api.call(operation, params);
      expect(outcome).toMatchObject({ isGood: false, code: call.code });
      if (!outcome.isGood) {
        expect(outcome.message).not.toMatch(/\n\s+at |\.ts:|\.js:/);
        // Malformed parameters get JSON-RPC's own code, all other errors the broker's.
        if (api.kind === "JSON-RPC") expect(outcome.rpcCode).toBe(call.code === 200001 ? -32602 : -32001);
      }
      expect(await takeSnapshot(client)).toEqual(before);
    },
  );
});
