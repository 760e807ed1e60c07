import type { BrokerProcess } from "./broker-process.ts";

/** The port of a listener, as the banner names it. @throws Error with the banner if it names none. */
export function portOf(broker: BrokerProcess, name: "MQTT" | "STOMP"): number {
  const [, port] = new RegExp(String.raw`^ {2}${name} +\w+:.*:(\d+)$`, "m").exec(broker.stderr()) ?? [];
  if (port === undefined) throw new Error(`no ${name} address in the banner:\n${broker.stderr()}`);
  return Number(port);
}
