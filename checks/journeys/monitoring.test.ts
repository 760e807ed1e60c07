import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { findProgram } from "../harness/find-program.ts";
import { createTempFolder } from "../harness/temp-folder.ts";
import { useReceivers, useWorld } from "../harness/use.ts";
import { embeddedWorld } from "../harness/world.ts";

const docs = (name: string): string => fileURLToPath(new URL(`../../docs/${name}`, import.meta.url));
const alertsFile = docs("monitoring/alerts.yaml");
const canRunPromtool = process.env["CHECKS_PROMTOOL"] === "required" || findProgram("promtool") !== undefined;

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly refId: string; readonly expr: string }[];
}

// A test below compares the file with Grafana's model.
const dashboard = JSON.parse(readFileSync(docs("monitoring/dashboard.json"), "utf8")) as {
  readonly panels: readonly Panel[];
};
const expressions = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));

const running = useWorld(embeddedWorld, { env: { STELE_MQTT_PORT: "0", STELE_STOMP_PORT: "0" } });
const startReceiver = useReceivers();
let text: string;
/** Metrics of Stele by name, with type and help text. */
let metrics: ReadonlyMap<string, { readonly type: string; readonly help: string }>;

beforeAll(async () => {
  const { client } = running();
  const receiver = await startReceiver();
  await client.open("monitoring");
  await client.subscribe({ topic: "monitoring", url: receiver.url });
  await client.publish("monitoring", "x");
  await receiver.waitForCount(1);
  text = (await client.http.send({ method: "GET", path: "/metrics" })).text;
  const types = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = "", type = ""]) => [name, type]));
  metrics = new Map(
    [...text.matchAll(/^# HELP (stele_\S+) (.*)$/gm)].map(([, name = "", help = ""]) => [
      name,
      { type: types.get(name) ?? "", help },
    ]),
  );
});

function toRow(name: string): string {
  const { type, help } = metrics.get(name) ?? { type: "", help: "" };
  return `| \`${name}\` | ${type} | ${help} |`;
}

/** Each alert with the series of a fault that begins after ten minutes, and with a part of the description that the alert has 30 minutes later. */
const faults: readonly (readonly [alert: string, series: Readonly<Record<string, string>>, description: string])[] = [
  ["SteleDown", { up: "1x10 0x60" }, ""],
  ["SteleDown", { 'up{job="stele-east"}': "1x10 0x60" }, ""],
  ["SteleRestarts", { process_start_time_seconds: "100x27 200x2 300x2 400x60" }, "It ended 3 times"],
  [
    "SteleRestartsOften",
    { process_start_time_seconds: "100x5 200x5 300x5 400x5 500x5 600x5 700x60" },
    "It ended 6 times in two hours",
  ],
  ["SteleGroupDown", { stele_group_up: "1x10 0x60" }, ""],
  ["SteleGroupNotFollowed", { stele_group_follows: "1x10 0x60" }, ""],
  ["SteleTransactionsFail", { stele_transactions_failing: "0x10 1x60" }, ""],
  ["SteleDiskNearlyFull", { stele_disk_free_bytes: "5e9x10 9e8x60" }, ""],
  ["SteleDiskNearlyFull", { stele_disk_free_bytes: "5e9-2e7x60" }, "3.912GiB are left"],
  ["SteleDamage", { 'stele_chain_damaged_total{outcome="unmended"}': "0x10 1x60" }, ""],
  ["SteleDamage", { 'stele_index_damaged_total{outcome="unmended"}': "0x10 1x60" }, ""],
  ["SteleReorganisation", { stele_reorganisations_total: "0x30 1x60" }, "see docs/groups.md#a-public-chain"],
  ["SteleSubscriptionsSuspended", { stele_subscriptions_suspended: "0x10 2x60" }, ""],
  ["SteleSubscriptionsLocked", { stele_subscriptions_locked: "0x10 2x60" }, ""],
  ["SteleDeadLetters", { 'stele_dead_letters_total{change="added"}': "0x30 1x60" }, ""],
  ["SteleDeliveryLag", { stele_delivery_lag_seconds: "0x10 301x60" }, ""],
  ["SteleChainLag", { stele_group_lag_blocks: "0x10 101x60" }, ""],
  ["SteleEventLoopBlocked", { nodejs_eventloop_lag_p99_seconds: "0.01x10 0.6x60" }, ""],
  [
    "SteleCallbacksFail",
    {
      'stele_delivery_attempt_duration_seconds_count{outcome="accepted"}': "0+60x10 600x60",
      'stele_delivery_attempt_duration_seconds_count{outcome="failed"}': "0x10 0+60x60",
    },
    "",
  ],
];

/** Series of two healthy nodes, for each rule that aggregates. */
const healthy: readonly Readonly<Record<string, string>>[] = [
  { 'stele_group_follows{instance="a",group="1"}': "1x60", 'stele_group_follows{instance="b",group="1"}': "0x60" },
  {
    'stele_subscriptions_suspended{instance="a",group="1"}': "0x60",
    'stele_subscriptions_suspended{instance="b",group="1"}': "0x60",
  },
  {
    'stele_subscriptions_locked{instance="a",group="1"}': "0x60",
    'stele_subscriptions_locked{instance="b",group="1"}': "0x60",
  },
  {
    'stele_delivery_attempt_duration_seconds_count{instance="a",outcome="accepted"}': "0+60x60",
    'stele_delivery_attempt_duration_seconds_count{instance="a",outcome="failed"}': "0+20x60",
    'stele_delivery_attempt_duration_seconds_count{instance="b",outcome="accepted"}': "0+1x60",
  },
];

/** The series of a metric, perhaps with labels, as Prometheus stores it after a scrape. */
function withJob(metric: string): string {
  if (metric.includes("{job=")) return metric;
  return metric.includes("{") ? metric.replace("{", '{job="stele",') : `${metric}{job="stele"}`;
}

/** Runs the alert rules for 40 minutes. Returns the alerts that fire then, and the report of promtool. */
function runRules(series: Readonly<Record<string, string>>) {
  using folder = createTempFolder();
  const input = Object.entries(series).map(([metric, values]) => ({ series: withJob(metric), values }));
  const names = [...readFileSync(alertsFile, "utf8").matchAll(/alert: (\w+)/g)].map(([, alert = ""]) => alert);
  // Expects no alert, so that promtool reports each that fires.
  const alertTests = names.map((alertname) => ({ eval_time: "40m", alertname, exp_alerts: [] }));
  const tests = [{ interval: "1m", input_series: input, alert_rule_test: alertTests }];
  const file = join(folder.path, "test.yaml");
  writeFileSync(file, JSON.stringify({ rule_files: [alertsFile], evaluation_interval: "1m", tests }));
  const { stdout, stderr } = spawnSync("promtool", ["test", "rules", file], { encoding: "utf8" });
  const report = stdout + stderr;
  return { alerts: [...report.matchAll(/Labels:\{alertname="(\w+)"/g)].map(([, alert]) => alert), report };
}

/** The names of metrics in an expression. */
function namesIn(expression: string): readonly string[] {
  return [...expression.matchAll(/\b(?:stele|nodejs|process)_[a-z0-9_]+/g)].map(([name]) => name);
}

/** Names of the metrics that have at least one series. */
function namesWithSeries(): ReadonlySet<string> {
  return new Set([...text.matchAll(/^([a-z0-9_]+)[{ ]/gm)].map(([, name = ""]) => name));
}

describe("/metrics", () => {
  it("the names of counters, and of no other metrics, end with _total; every help text ends with a full stop", () => {
    for (const [name, { type, help }] of metrics) {
      expect([name, name.endsWith("_total")]).toEqual([name, type === "counter"]);
      expect([name, help.endsWith(".")]).toEqual([name, true]);
    }
    expect(text).not.toMatch(/^# TYPE \S+_total gauge$/m);
  });

  it("/metrics has a series for every value of a label from the start", () => {
    for (const line of [
      'stele_delivery_attempt_duration_seconds_count{outcome="gone"} 0',
      'stele_callback_lookups_total{outcome="timed-out"} 0',
      'stele_connections_ended_total{reason="slow"} 0',
      'stele_reorganisations_total{group="1"} 0',
      'stele_chain_damaged_total{group="1",outcome="unmended"} 0',
      'stele_tails_ended_total{reason="stalled"} 0',
      'stele_subscriptions_suspended{group="1"} 0',
    ]) {
      expect(text.split("\n")).toContain(line);
    }
    const empty = [...metrics.keys()].filter((name) => !new RegExp(`^${name}(_count)?[{ ]`, "m").test(text));
    // The first round of the scrub sets these metrics. It may have begun.
    const late = ["stele_scrubbed_block", "stele_chain_scrubbed_block", "stele_scrub_ended_timestamp_seconds"];
    expect(empty.filter((name) => !late.includes(name))).toEqual([]);
  });

  it("/metrics has the connections of each listener and the bytes of each file", () => {
    expect(text).toMatch(/^stele_http_connections\{listener="HTTP"\} [1-9]/m);
    expect(text).toMatch(/^stele_data_bytes\{part="chain"\} [1-9]/m);
    expect(text).toMatch(/^stele_data_bytes\{part="store_log"\} \d/m);
    expect(text).toMatch(/^stele_disk_free_bytes [1-9]/m);
  });

  // `npx vitest run checks/journeys/monitoring -u` updates the table.
  it("docs/monitoring.md lists every metric with its type and help text", async () => {
    const page = readFileSync(docs("monitoring.md"), "utf8");
    const rows = [...metrics.keys()].toSorted().map(toRow);
    const [head, end] = ["|---|---|---|\n", "<!-- end of table -->"];
    const before = page.slice(0, page.indexOf(head) + head.length);
    await expect(`${before}${rows.join("\n")}\n${page.slice(page.indexOf(end))}`).toMatchFileSnapshot(
      docs("monitoring.md"),
    );
  });

  it.runIf(canRunPromtool)("/metrics passes promtool check metrics without a message", () => {
    expect(execFileSync("promtool", ["check", "metrics"], { input: text, encoding: "utf8" })).toBe("");
  });
});

describe("the dashboard and the alert rules", () => {
  it("the dashboard and the alert rules use only metrics that the broker has", () => {
    const names = [...expressions, readFileSync(alertsFile, "utf8")].flatMap(namesIn);
    expect(names.length).toBeGreaterThan(30);
    expect(names.filter((name) => !namesWithSeries().has(name))).toEqual([]);
  });

  it("the dashboard fits Grafana's model", () => {
    expect(dashboard).toMatchObject({
      uid: expect.stringMatching(/^[A-Za-z0-9_-]{1,40}$/),
      title: expect.any(String),
      schemaVersion: expect.any(Number),
      time: { from: expect.any(String), to: expect.any(String) },
      templating: { list: expect.any(Array) },
    });
    expect(dashboard).not.toHaveProperty("id");
    const { panels } = dashboard;
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const places = new Set<string>();
    for (const { type, title, gridPos, targets = [] } of panels) {
      expect(["row", "stat", "timeseries"]).toContain(type);
      expect(title).not.toBe("");
      expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
      expect(new Set(targets.map(({ refId }) => refId)).size).toBe(targets.length);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
          expect(places.has(`${x} ${y}`)).toBe(false);
          places.add(`${x} ${y}`);
        }
      }
    }
  });

  it.runIf(canRunPromtool)("the alert rules and the dashboard's expressions pass promtool check rules", () => {
    using folder = createTempFolder();
    const file = join(folder.path, "dashboard.yaml");
    const filled = expressions.map((expr) => expr.replaceAll("$__rate_interval", "5m").replaceAll("$", ""));
    const rules = filled.map((expr, index) => ({ record: `dashboard:${index}`, expr }));
    writeFileSync(file, JSON.stringify({ groups: [{ name: "dashboard", rules }] }));
    for (const checked of [alertsFile, file]) {
      expect(execFileSync("promtool", ["check", "rules", checked], { encoding: "utf8" })).toMatch(/SUCCESS/);
    }
  });

  it.runIf(canRunPromtool).each(faults)(
    "the alert %s fires while %j, and no other alert does",
    (name, series, description) => {
      const { alerts, report } = runRules(series);
      expect(alerts).toEqual([name]);
      expect(report).toContain(description);
    },
  );

  it.runIf(canRunPromtool).each([
    ["SteleSubscriptionsSuspended", "stele_subscriptions_suspended", ""],
    ["SteleSubscriptionsLocked", "stele_subscriptions_locked", " without events, since no key opens their secrets"],
  ])("if several clusters have the same group, the alert %s names the cluster", (name, metric, what) => {
    const { alerts, report } = runRules({
      [`${metric}{job="stele-east",instance="a",group="1"}`]: "3x60",
      [`${metric}{job="stele-west",instance="b",group="1"}`]: "2x60",
    });
    expect(alerts).toEqual([name, name]);
    expect(report).toContain(`ubscriptions of group 1 of stele-east${what}: 3`);
    expect(report).toContain(`ubscriptions of group 1 of stele-west${what}: 2`);
  });

  it.runIf(canRunPromtool).each(healthy)("no alert fires for two healthy nodes of one cluster: %j", (series) => {
    const { alerts, report } = runRules(series);
    expect({ alerts, report }).toEqual({ alerts: [], report: expect.stringContaining("SUCCESS") });
  });
});
