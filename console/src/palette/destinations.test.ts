import { expect, test } from "vitest";
import { views } from "../views.ts";
import { findDestinations } from "./destinations.ts";

const addressesOf = (text: string) => findDestinations(text).map(({ address }) => address);

test("the palette returns every view for a blank text", () => {
  expect(findDestinations(" ")).toEqual(views);
});

test.each([
  ["2cf24dba-59-1124", ["/events/2cf24dba-59-1124", "/events/2cf24dba-59-1124/proof"]],
  ["00000000-0000-4000-8000-000000000002", ["/subscriptions/00000000-0000-4000-8000-000000000002"]],
  ["acme/00000000-0000-4000-8000-000000000002", ["/subscriptions/acme/00000000-0000-4000-8000-000000000002"]],
  ["TAIL", ["/tail", "/tail?topic=TAIL"]],
  ["orders/#", ["/tail?topic=orders%2F%23", "/subscriptions?prefix=orders%2F"]],
])("%j leads first to %j", (text, addresses) => {
  expect(addressesOf(text).slice(0, addresses.length)).toEqual(addresses);
});
