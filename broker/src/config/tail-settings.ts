import { integer, type SettingsTable, text } from "./setting.ts";

/** Settings of tails. */
export const tailSettings = {
  tailsMax: integer({
    section: "Tails",
    description:
      "Maximum number of open tails; further ones get 503 with error 200300. 0 turns tails off. See [tail.md](tail.md).",
    default: 5_000,
    min: 0,
    max: 20_000,
  }),
  cloudEventsType: text({
    section: "Tails",
    description:
      "`type` of a CloudEvent, also in a callback, if its publish gave none by the extension `svc-ce-type`. The CloudEvents standard recommends a reversed domain name as its beginning.",
    default: "stele.event",
    rule: "1 to 256 printable characters of ASCII",
    check: (value) => /^[\x21-\x7e]{1,256}$/.test(value),
  }),
} as const satisfies SettingsTable;
