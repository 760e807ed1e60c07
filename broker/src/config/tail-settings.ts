import { integer, type SettingsTable, text } from "./setting.ts";

/** Settings of tails. */
export const tailSettings = {
  tailsMax: integer({
    section: "Tails",
    description: "Tails at once; further ones get 503 with error 200300. 0 turns them off. See [tail.md](tail.md).",
    default: 5_000,
    min: 0,
    max: 20_000,
  }),
  cloudEventsType: text({
    section: "Tails",
    description:
      "`type` of CloudEvents, also of callbacks, whose publish named none by an extension `svc-ce-type`; CloudEvents recommend the reversed name of a domain as its beginning.",
    default: "stele.event",
    rule: "1 to 256 printable characters of ASCII",
    check: (value) => /^[\x21-\x7e]{1,256}$/.test(value),
  }),
} as const satisfies SettingsTable;
