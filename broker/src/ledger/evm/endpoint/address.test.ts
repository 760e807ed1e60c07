import { expect, test } from "vitest";
import { EndpointAddress } from "./address.ts";

test.each([
  ["http://127.0.0.1:8545", "http://127.0.0.1:8545"],
  ["http://127.0.0.1:8545/", "http://127.0.0.1:8545"],
  ["https://mainnet.example/v3/0123456789abcdef", "https://mainnet.example/…"],
  ["wss://user:hunter22@node.example:8546", "wss://node.example:8546/…"],
  ["https://node.example?apikey=abcdef0123", "https://node.example/…"],
  ["ipc:/var/lib/geth/geth.ipc", "ipc:/var/lib/geth/geth.ipc"],
])("%s is shown as %s", (text, name) => {
  expect(new EndpointAddress(text).name).toBe(name);
});

test("replaces the secret parts of an address in a text that the endpoint sent", () => {
  const address = new EndpointAddress("https://us%65r:hunt%2Fer2@node.example/v3/0123456789abcdef?key=abcdef0123");
  const said = "no v3 access for 0123456789abcdef by key abcdef0123 and hunt/er2";
  expect(address.scrub(said)).toBe("no v3 access for … by key … and …");
});
