import { fileURLToPath } from "node:url";
import { Client as StompjsClient, Versions } from "@stomp/stompjs";
import { afterEach, describe, it } from "vitest";
import { WebSocket } from "ws";
import { versions } from "../conformance/stomp/frames.ts";
import { Lines } from "../harness/lines.ts";
import { portOf } from "../harness/listener-port.ts";
import { canImport, debianPython, PythonScript } from "../harness/python.ts";
import { useWorld } from "../harness/use.ts";
import { embeddedWorld } from "../harness/world.ts";
import { journey } from "./stomp/journey.ts";
import { type Driver, OrderedClient } from "./stomp/ordered-client.ts";
import { RawClient } from "./stomp/raw-client.ts";
import { createDriver } from "./stomp/stompjs.mjs";

const script = fileURLToPath(new URL("stomp/journey.py", import.meta.url));
const title = "publishes, receives, rejects, commits a transaction and resumes its durable subscription";

const running = useWorld(embeddedWorld, { env: { STELE_STOMP_PORT: "0" } });
const stompPort = (): number => portOf(running().broker, "STOMP");

describe.each(versions)("STOMP %s", (version) => {
  it(`a raw socket ${title}`, async () => {
    await journey(new RawClient(stompPort(), version), { rest: running().client, version, name: `raw/${version}` });
  });

  it(`@stomp/stompjs ${title}`, async () => {
    const address = `${running().broker.url.replace(/^http/, "ws")}/stomp`;
    const client = new OrderedClient(createStompjs(address, version));
    await journey(client, { rest: running().client, version, name: `stompjs/${version}` });
  });
});

describe.runIf(canImport("import stomp"))("stomp.py", () => {
  let python: PythonScript | undefined;
  afterEach(() => python?.kill());

  it.each(versions)(`over STOMP %s ${title}`, async (version) => {
    python = new PythonScript(script, [version, String(stompPort())]);
    await journey(new OrderedClient(python), { rest: running().client, version, name: `stomp.py/${version}` });
  });

  it(`over WebSocket ${title}`, async () => {
    python = new PythonScript(script, ["websocket", new URL(running().broker.url).port]);
    await journey(new OrderedClient(python), { rest: running().client, version: "1.2", name: "stomp.py/websocket" });
  });
});

describe.runIf(canImport("import stomp", debianPython))("Debian's python3-stomp", () => {
  let python: PythonScript | undefined;
  afterEach(() => python?.kill());

  it.each(versions)(`over STOMP %s ${title}`, async (version) => {
    python = new PythonScript(script, [version, String(stompPort())], debianPython);
    await journey(new OrderedClient(python), { rest: running().client, version, name: `python3-stomp/${version}` });
  });
});

function createStompjs(address: string, version: string): Driver {
  const lines = new Lines();
  const stompVersions = new Versions([version]);
  const config = { stompVersions, webSocketFactory: () => new WebSocket(address, stompVersions.protocolVersions()) };
  return { lines, do: createDriver({ Client: StompjsClient, config, say: (line) => lines.push(line) }) };
}
