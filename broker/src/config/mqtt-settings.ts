import { choice, integer, portOrOff, type SettingsTable } from "./setting.ts";

const section = "MQTT";

/** Settings of the MQTT listener. */
export const mqttSettings = {
  mqttPort: portOrOff({
    section,
    description:
      "Port to listen on for MQTT 3.1.1 and 5.0, at the address of `host`; 0 takes any free one. `off` takes no MQTT, neither there nor over WebSocket at `/mqtt`. See [mqtt.md](mqtt.md) for what is missing as yet.",
    default: "off",
  }),
  mqttAutoOpen: choice(["on", "off"], {
    section,
    description: "Whether a publish by MQTT opens its topic where there is none; otherwise it is refused.",
    default: "on",
  }),
  mqttConnectionsMax: integer({
    section,
    description: "MQTT connections at once; further ones are closed at once.",
    default: 10_000,
    min: 1,
    max: 1_000_000,
  }),
} as const satisfies SettingsTable;
