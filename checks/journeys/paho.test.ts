import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { portOf } from "../harness/listener-port.ts";
import { canImport, PythonScript } from "../harness/python.ts";
import { useWorld } from "../harness/use.ts";
import { embeddedWorld } from "../harness/world.ts";

const script = fileURLToPath(new URL("paho/journey.py", import.meta.url));
const canRun = canImport("from paho.mqtt.client import CallbackAPIVersion");
const running = useWorld(embeddedWorld, { env: { STELE_MQTT_PORT: "0" } });
let paho: PythonScript | undefined;
afterEach(() => paho?.kill());

/** Give each test its own `clientId`: a session repeats what an earlier client with its identifier did not acknowledge. */
function startPaho(version: 4 | 5, clientId: string): PythonScript {
  paho = new PythonScript(script, [String(portOf(running().broker, "MQTT")), String(version), clientId]);
  return paho;
}

describe.runIf(canRun).each([4, 5] as const)("Paho for Python, protocol level %d", (version) => {
  it("Paho publishes and receives with every QoS, keeps its session, and sees what REST publishes", async () => {
    const topic = `paho/${version}`;
    const rest = running().client;
    const client = startPaho(version, `paho-${version}`);
    client.do("connect");
    expect(await client.lines.next("connected")).toMatchObject({ ok: true, present: false });
    client.do("subscribe", { filter: `${topic}/#`, qos: 2 });
    expect(await client.lines.next("subscribed")).toMatchObject({ codes: [2] });
    for (const qos of [0, 1, 2]) {
      client.do("publish", { topic: `${topic}/a`, payload: `qos ${qos}`, qos, user: { colour: "blue" } });
      await client.lines.next("published");
      const message = await client.lines.next("message");
      expect(message).toMatchObject({ topic: `${topic}/a`, payload: `qos ${qos}`, qos });
      if (version === 5) expect(message).toMatchObject({ user: { colour: "blue" } });
    }
    client.do("disconnect");
    await client.lines.next("disconnected");

    const { eventId } = await rest.publish(`${topic}/a`, "by REST");
    expect((await rest.getEvent(eventId)).topic).toBe(`${topic}/a`);
    client.do("connect");
    expect(await client.lines.next("connected")).toMatchObject({ ok: true, present: true });
    expect(await client.lines.next("message")).toMatchObject({ payload: "by REST" });
    expect((await rest.state(`${topic}/a`)).sequenceNumber).toBe(4);
  });

  it("Paho gets the retained message of a topic", async () => {
    const topic = `paho-retained/${version}`;
    const client = startPaho(version, topic.replace("/", "-"));
    client.do("connect");
    await client.lines.next("connected");
    client.do("publish", { topic, payload: "kept", qos: 1, retain: true });
    await client.lines.next("published");
    client.do("subscribe", { filter: topic, qos: 1 });
    expect(await client.lines.next("message")).toMatchObject({ topic, payload: "kept", retained: true });
  });
});
