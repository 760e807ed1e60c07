import { expect, it, onTestFinished } from "vitest";
import { parseTopicFilter } from "../../domain/topic-filter.ts";
import { RecordingPeer } from "../testing/recording-peer.ts";
import { TestEngine } from "../testing/test-engine.ts";
import { Session } from "./session.ts";

it("passes an uncommitted event only once to a session that reads on before its former feed has closed", async () => {
  const engine = await TestEngine.start();
  onTestFinished(() => engine.stop());
  await engine.broker.open({ topic: "a", groupId: undefined });
  const passed: string[] = [];
  const options = { qos: 0, isNoLocal: false, isRetainAsPublished: false, identifier: undefined } as const;
  const attach = async (key: string): Promise<Session> => {
    const peer = Object.assign(new RecordingPeer(), { pass: () => void passed.push(key) });
    const request = { groupId: undefined, protocol: "MQTT", key, isClean: false, windowMax: 10 } as const;
    const rest = { will: undefined, expiryMs: 60_000, onConnected: () => {} };
    const { session, subscribe } = await engine.broker.attach({ ...request, ...rest }, peer);
    await subscribe([{ ...options, filter: parseTopicFilter("a") }]);
    if (!(session instanceof Session)) throw new Error("the engine's sessions are of another class");
    return session;
  };
  const sessions = [await attach("one"), await attach("two")];
  await engine.clock.settle();
  let now = engine.clock.monotonic();
  engine.clock.monotonic = () => (now += 10); // The first step of each turn uses up its slice.
  for (const session of sessions) {
    session.restart();
    session.readOn();
  }
  await engine.broker.pass({ topic: "a", groupId: undefined, content: new Uint8Array([1]), extensions: [] });
  expect(passed.toSorted()).toEqual(["one", "two"]);
});
