import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type BrokerProcess, startBroker } from "../harness/broker-process.ts";
import { Client } from "../harness/client.ts";
import { findProgram } from "../harness/find-program.ts";
import { portOf } from "../harness/listener-port.ts";
import { createTempFolder, type TempFolder } from "../harness/temp-folder.ts";
import { until } from "../harness/until.ts";

const run = promisify(execFile);
const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
const [, marked = ""] = /<!-- mqtt:begin -->([\s\S]*?)<!-- mqtt:end -->/.exec(readme) ?? [];
const [subscribeLine = "", publishLine = ""] = [...marked.matchAll(/^mosquitto.*$/gm)].map(([line]) => line);

const canRun = process.env["CHECKS_MOSQUITTO"] === "required" || findProgram("mosquitto_pub") !== undefined;
let folder: TempFolder;
let broker: BrokerProcess;
let port = 0;

beforeAll(async () => {
  folder = createTempFolder();
  broker = await startBroker({ dataDir: folder.path, env: { STELE_MQTT_PORT: "0" } });
  port = portOf(broker, "MQTT");
});
afterAll(async () => {
  await broker.stop();
  folder[Symbol.dispose]();
});

/** A shell line of the README, at this broker's port. */
function here(line: string): string {
  return line.replace("-p 1883", `-p ${port}`);
}

/** Runs a line of mosquitto_sub, and waits until the broker has granted the filter. `printed` resolves with the program's whole output. */
async function startSubscriber(line: string): Promise<{ readonly printed: Promise<string> }> {
  // With -d, the program also prints when its filter is granted. Without stdbuf, it would print only when it exits.
  const running = run("bash", ["-c", `stdbuf -oL ${here(line)} -d`], { timeout: 30_000 });
  let seen = "";
  running.child.stdout?.on("data", (chunk: string) => {
    seen += chunk;
  });
  await until("the subscription is granted", () => seen.includes("Subscribed (mid"));
  return { printed: running.then(({ stdout }) => stdout) };
}

/** The events in a subscriber's output, without the lines that -d adds. */
function eventsOf(printed: string): readonly string[] {
  return printed.split("\n").filter((line) => line !== "" && !/^(Client|Subscribed)/.test(line));
}

describe.runIf(canRun)("the clients of Mosquitto (need mosquitto-clients)", () => {
  it("mosquitto_sub and mosquitto_pub work as the README describes", async () => {
    expect(subscribeLine).toMatch(/^mosquitto_sub .*-p 1883 /);
    expect(publishLine).toMatch(/^mosquitto_pub .*-p 1883 /);
    const { printed } = await startSubscriber(subscribeLine);
    await run("bash", ["-c", here(publishLine)], { timeout: 30_000 });
    expect(eventsOf(await printed)).toEqual(["plant/boiler 21 degrees"]);
    const { sequenceNumber } = await new Client(broker.url).state("plant/boiler");
    expect(sequenceNumber).toBe(1);
  });

  it.each(["mqttv311", "mqttv5"])(
    "mosquitto_pub and mosquitto_sub exchange events of every QoS in order, and with those of REST, by %s",
    async (version) => {
      const topic = `stock/${version}`;
      const common = `-h 127.0.0.1 -p 1883 -V ${version}`;
      const { printed } = await startSubscriber(`mosquitto_sub ${common} -q 2 -t 'stock/${version}' -C 4`);
      for (const qos of [0, 1, 2]) {
        await run("bash", ["-c", here(`mosquitto_pub ${common} -q ${qos} -t ${topic} -m 'qos ${qos}'`)], {
          timeout: 30_000,
        });
      }
      await new Client(broker.url).publish(topic, "by REST");
      expect(eventsOf(await printed)).toEqual(["qos 0", "qos 1", "qos 2", "by REST"]);
    },
  );
});
