import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type BrokerProcess, startBroker } from "../../harness/broker-process.ts";
import { devKey } from "../../harness/anvil.ts";
import { type Api, apiOver, type Outcome } from "../../harness/apis.ts";
import { findFreePort } from "../../harness/free-port.ts";
import { groupsEnv } from "../../harness/group.ts";
import { HttpClient } from "../../harness/http-client.ts";
import { createTempFolder } from "../../harness/temp-folder.ts";

interface Document {
  readonly methods: readonly {
    readonly name: string;
    readonly errors: readonly { readonly data: readonly { readonly code: number }[] }[];
  }[];
}

const params = {
  topic: "t",
  content: "x",
  url: "http://127.0.0.1:65535/",
  eventId: "e3b98a4d-1-1",
  subscriptionId: "0a0a0a0a-1111-4222-8333-444444444444",
};
const calls = [
  ["open", { topic: params.topic }],
  ["close", { topic: params.topic }],
  ["exist", { topic: params.topic }],
  ["publish", { topic: params.topic, content: params.content }],
  ["subscribe", { topic: params.topic, url: params.url }],
  ["unSubscribe", { subscriptionId: params.subscriptionId }],
  ["getEvent", { eventId: params.eventId }],
  ["getProof", { eventId: params.eventId }],
  ["list", {}],
  ["state", { topic: params.topic }],
] as const;

/** Starts a broker with the settings of `envOf` for all tests of the block. Returns functions that call it over JSON-RPC. */
function useBroker(envOf: () => Promise<Readonly<Record<string, string>>>) {
  const folder = createTempFolder();
  let broker: BrokerProcess;
  let http: HttpClient;
  let rpc: Api;
  beforeAll(async () => {
    broker = await startBroker({ dataDir: folder.path, env: await envOf() });
    http = new HttpClient(broker.url);
    rpc = apiOver(http, "JSON-RPC");
  });
  afterAll(async () => {
    await http?.[Symbol.asyncDispose]();
    await broker?.[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });
  return {
    call: (...[name, values]: Parameters<Api["call"]>): Promise<Outcome> => rpc.call(name, values),
    /** The codes that the OpenRPC document lists for a method. */
    listCodes: async (name: string): Promise<readonly number[]> => {
      const outcome = await rpc.call("rpc.discover");
      if (!outcome.isGood) throw new Error(outcome.message);
      const { methods } = outcome.value as Document; // Other tests check the document.
      return methods.find((method) => method.name === name)?.errors[0]?.data.map(({ code }) => code) ?? [];
    },
  };
}

describe("a method whose group has not reached its chain", () => {
  const broker = useBroker(async () => {
    const endpoints = [`http://127.0.0.1:${await findFreePort()}`];
    return groupsEnv([{ id: "1", endpoints, privateKey: devKey(0) }]);
  });

  it.each(calls.filter(([name]) => name !== "unSubscribe"))(
    "%s returns 200205 while its group has not reached the chain, and the OpenRPC document lists this code",
    async (name, values) => {
      expect(await broker.call(name, values)).toMatchObject({ isGood: false, code: 200205 });
      expect(await broker.listCodes(name)).toContain(200205);
    },
  );
});

describe("a method that is called without a credential, where access is on", () => {
  const broker = useBroker(async () => ({ STELE_ACCESS: '{"roles":{}}' }));

  it.each(calls)(
    "%s without a credential returns 100701, and the OpenRPC document lists the codes of refused access",
    async (name, values) => {
      expect(await broker.call(name, values)).toMatchObject({ isGood: false, code: 100701 });
      expect(await broker.listCodes(name)).toEqual(expect.arrayContaining([100701, 100702, 200300]));
    },
  );
});
