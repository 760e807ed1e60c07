import { expect, test } from "vitest";
import { candidatesFor, parseSearchRules } from "./search-list.ts";

const kubernetes = `
nameserver 10.96.0.10
search app.svc.cluster.local svc.cluster.local cluster.local.
options ndots:5 timeout:1
`;

test.each([
  [
    "receiver.ns",
    ["receiver.ns.app.svc.cluster.local", "receiver.ns.svc.cluster.local", "receiver.ns.cluster.local", "receiver.ns"],
  ],
  [
    "a.b.c.d.e.example",
    [
      "a.b.c.d.e.example",
      "a.b.c.d.e.example.app.svc.cluster.local",
      "a.b.c.d.e.example.svc.cluster.local",
      "a.b.c.d.e.example.cluster.local",
    ],
  ],
  ["receiver.ns.", ["receiver.ns"]],
])("in Kubernetes, the name %s becomes the queries %j", (name, candidates) => {
  expect(candidatesFor(name, parseSearchRules(kubernetes))).toEqual(candidates);
});

test.each([
  ["", "receiver", ["receiver"]],
  ["search lan", "receiver", ["receiver.lan", "receiver"]],
  ["search lan", "receiver.example", ["receiver.example", "receiver.example.lan"]],
  ["search lan\ndomain other.lan", "receiver", ["receiver.other.lan", "receiver"]],
  ["search lan\noptions ndots:0", "receiver", ["receiver", "receiver.lan"]],
  ["search lan\noptions ndots:99", "a.b", ["a.b.lan", "a.b"]],
  ["# search lan\nsearch", "receiver", ["receiver"]],
])("with the resolv.conf %j, the name %s becomes the queries %j", (text, name, candidates) => {
  expect(candidatesFor(name, parseSearchRules(text))).toEqual(candidates);
});
