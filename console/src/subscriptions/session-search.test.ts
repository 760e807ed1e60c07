import { expect, test } from "vitest";
import { readSessionSearch } from "./session-search.ts";

test.each([
  ["list=sessions", {}],
  ["kind=MQTT&connected=false", { kind: "MQTT", connected: false }],
  ["connected=true&owner=key:a&lagMin=0", { connected: true, owner: "key:a", lagMin: 0 }],
])("reads the search %j as %j", (text, search) => {
  expect(readSessionSearch(new URLSearchParams(text))).toEqual(search);
});
