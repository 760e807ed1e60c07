import { describe, expect, test } from "vitest";
import { type LoadOutcome, loadConfig } from "./load-config.ts";
import { settings } from "./settings.ts";

interface Given {
  readonly env?: Record<string, string | undefined>;
  readonly argv?: readonly string[];
  readonly files?: Record<string, string>;
}

function load({ env = {}, argv = [], files = {} }: Given): LoadOutcome {
  const readFile = (path: string) => {
    const text = files[path];
    if (text === undefined) throw new Error(`ENOENT: no such file: ${path}`);
    return text;
  };
  return loadConfig({ env, argv, readFile, version: "1.2.3" });
}

function loaded(given: Given) {
  const outcome = load(given);
  if (outcome.status !== "loaded") throw new Error(`not loaded: ${JSON.stringify(outcome)}`);
  return outcome.config;
}

function problemsOf(given: Given): readonly string[] {
  const outcome = load(given);
  return outcome.status === "refused" ? outcome.problems : [];
}

describe("loadConfig", () => {
  test("returns the documented defaults, frozen", () => {
    const config = loaded({});
    expect(config).toMatchObject({
      host: "127.0.0.1",
      port: 8080,
      dataDir: "./data",
      basePath: "",
      extensionPrefix: "svc-",
      contentBytesMax: 65_536,
      extensionsBytesMax: 4096,
      defaultGroup: "1",
      coordination: "store",
      callbackTimeoutMs: 15_000,
      callbackGiveUpAfterMs: 259_200_000,
      callbackAllow: [],
    });
    expect(config.advertisedAddress).toBeUndefined();
    expect(Object.isFrozen(config) && Object.isFrozen(config.callbackAllow)).toBe(true);
  });

  test("every default passes its own rule, except derived ones", () => {
    for (const [name, setting] of Object.entries(settings)) {
      if (setting.default !== undefined) expect(setting.schema.safeParse(setting.default).success, name).toBe(true);
    }
  });

  test("a flag wins over the environment, the environment over the file", () => {
    const files = { "stele.json": '{"port": 1, "host": "127.0.0.2", "basePath": "/file"}' };
    const env = { STELE_PORT: "2", STELE_HOST: "127.0.0.3", STELE_CONFIG: "stele.json" };
    const config = loaded({ env, argv: ["--port=3"], files });
    expect(config).toMatchObject({ port: 3, host: "127.0.0.3", basePath: "/file" });
  });

  test("--config wins over STELE_CONFIG", () => {
    const files = { "a.json": '{"port": 1}', "b.json": '{"port": 2}' };
    expect(loaded({ env: { STELE_CONFIG: "a.json" }, argv: ["--config", "b.json"], files }).port).toBe(2);
  });

  test("an empty variable counts as omitted, an empty flag does not", () => {
    const files = { f: '{"basePath": "/events"}' };
    expect(loaded({ env: { STELE_PORT: "", STELE_BASE_PATH: "", STELE_CONFIG: "" } }).port).toBe(8080);
    expect(loaded({ argv: ["--config=f", "--base-path="], files }).basePath).toBe("");
  });

  test("ignores other programs' variables", () => {
    expect(load({ env: { PATH: "/bin", STELLAR: "1", PORT: "1" } }).status).toBe("loaded");
  });

  test.each([
    [{ env: { STELE_CALLBACK_ALLOW: "10.0.0.0/8, fd00::/8" } }],
    [{ argv: ["--callback-allow", "10.0.0.0/8,fd00::/8,"] }],
    [{ argv: ["--config", "f"], files: { f: '{"callbackAllow": ["10.0.0.0/8", "fd00::/8"]}' } }],
  ])("reads a list from %j", (given: Given) => {
    expect(loaded(given).callbackAllow).toEqual(["10.0.0.0/8", "fd00::/8"]);
  });

  test.each([
    ["STELE_ALLOWED_HOSTS", "events.example.org, *.cluster.local,node_1,*"],
    ["STELE_ALLOWED_ORIGINS", "https://a.example.org,http://localhost:3000,chrome-extension://abcdef,*"],
  ])("%s accepts %s", (name, text) => {
    expect(load({ env: { [name]: text } }).status).toBe("loaded");
  });

  test.each([
    ...["a.example:80", "http://a.example", "a*.example", "*.", "*a", "a b", ".a", "-a"].map((text) => ["HOSTS", text]),
    ...[
      "a.example",
      "https://a.example/",
      "HTTPS://a.example",
      "https://a.example:443",
      "https://*.example",
      "null",
    ].map((text) => ["ORIGINS", text]),
  ])("STELE_ALLOWED_%s refuses %j", (name, text = "") => {
    expect(load({ env: { [`STELE_ALLOWED_${name}`]: text } }).status).not.toBe("loaded");
  });

  test.each<[Given, string]>([
    [{ env: { STELE_PROT: "1" } }, "STELE_PROT is not a known variable; did you mean STELE_PORT?"],
    [{ argv: ["--data-dir=~/stele"] }, `--data-dir: "~/stele" is not ${settings.dataDir.rule}`],
    [{ env: { STELE_DATA_DIR: "~stele/data" } }, `STELE_DATA_DIR: "~stele/data" is not ${settings.dataDir.rule}`],
    [
      { argv: ["--config", "f"], files: { f: '{"dataDir": "~"}' } },
      `dataDir in f: "~" is not ${settings.dataDir.rule}`,
    ],
    [{ env: { STELE_QQQQQQQQ: "1" } }, "STELE_QQQQQQQQ is not a known variable"],
    [{ argv: ["--hots", "x"] }, '"--hots" is not a known flag; did you mean --host?'],
    [{ argv: ["--check-confg"] }, '"--check-confg" is not a known flag; did you mean --check-config?'],
    [{ argv: ["--port"] }, "--port needs a value"],
    [{ argv: ["--port", "1", "--port", "2"] }, "--port is given more than once"],
    [{ argv: ["--help=yes"] }, "--help takes no value"],
    [{ argv: ["serve"] }, '"serve" is not expected: every setting is a flag'],
    [{ env: { STELE_PORT: "65536" } }, "STELE_PORT: 65536 is not an integer from 0 to 65535"],
    [{ env: { STELE_PORT: "80a" } }, 'STELE_PORT: "80a" is not an integer from 0 to 65535'],
    [{ argv: ["--port", "1.5"] }, '--port: "1.5" is not an integer from 0 to 65535'],
    [{ argv: ["--coordination", "zookeeper"] }, '--coordination: "zookeeper" is not one of store, none'],
    [
      { env: { STELE_CALLBACK_ALLOW: "10.0.0.0" } },
      'STELE_CALLBACK_ALLOW: ["10.0.0.0"] is not a list of networks such as 10.0.0.0/8, each IPv4 network written as IPv4, and none of them in 0.0.0.0/8 or ::/128, which callbacks never reach',
    ],
    [
      { env: { STELE_CALLBACK_ALLOW: "10/8" } },
      'STELE_CALLBACK_ALLOW: ["10/8"] is not a list of networks such as 10.0.0.0/8, each IPv4 network written as IPv4, and none of them in 0.0.0.0/8 or ::/128, which callbacks never reach',
    ],
    [
      { argv: ["--callback-allow", "::ffff:10.0.0.0/104"] },
      '--callback-allow: ["::ffff:10.0.0.0/104"] is not a list of networks such as 10.0.0.0/8, each IPv4 network written as IPv4, and none of them in 0.0.0.0/8 or ::/128, which callbacks never reach',
    ],
    [
      { env: { STELE_TRUSTED_PROXIES: "192.168/16" } },
      'STELE_TRUSTED_PROXIES: ["192.168/16"] is not a list of IP addresses and networks such as 10.0.0.7 or 10.1.0.0/16',
    ],
    [
      { env: { STELE_BASE_PATH: "/a/" } },
      'STELE_BASE_PATH: "/a/" is not empty or a path such as /events, without a slash at its end',
    ],
    ...["/.", "/a/..", "/a/../b"].map((path): [Given, string] => [
      { env: { STELE_BASE_PATH: path } },
      `STELE_BASE_PATH: "${path}" is not empty or a path such as /events, without a slash at its end`,
    ]),
    [
      { env: { STELE_ADVERTISED_ADDRESS: "me" } },
      'STELE_ADVERTISED_ADDRESS: "me" is not of the form host:port, with a port from 1 to 65535',
    ],
    [
      { argv: ["--config", "f"], files: { f: '{"prot": 1}' } },
      '"prot" in f is not a known setting; did you mean port?',
    ],
    [{ argv: ["--config", "f"], files: { f: '{"port": "1"}' } }, 'port in f: "1" is not an integer from 0 to 65535'],
    [
      { argv: ["--config", "f"], files: { f: "[]" }, env: { STELE_K: "0x1" } },
      "config file f cannot be used: it does not hold a JSON object",
    ],
    [
      { argv: ["--config", "f"], files: { f: '{"access": {"roles": {"a": [], "a": []}}}' } },
      'config file f cannot be used: an object has the name "a" twice, and only the last would count',
    ],
    [
      { env: { STELE_ACCESS: '{"roles": {"a": [], "a": []}}' } },
      'STELE_ACCESS: an object has the name "a" twice, and only the last would count',
    ],
    [
      {
        argv: ["--groups", '[{"id": "1", "id": "2", "signer": {"privateKeyEnv": "STELE_K"}}]'],
        env: { STELE_K: "0x1" },
      },
      '--groups: an object has the name "id" twice, and only the last would count',
    ],
    [
      { env: { STELE_GROUPS: '[{"id": "1"', STELE_K: "0x1" } },
      "STELE_GROUPS: the value is not a JSON array of 1 to 32 groups",
    ],
    [
      { argv: ["--groups", '[{"id": "1", "endpoints": "embedded"}]'], env: { STELE_GROUPS: "[{", STELE_ACCES: "{}" } },
      "STELE_ACCES is not a known variable; did you mean STELE_ACCESS?",
    ],
    [{ argv: ["--config", "f"], env: { STELE_K: "0x1" } }, "config file f cannot be used: ENOENT: no such file: f"],
    [
      { env: { STELE_CONTENT_BYTES_MAX: "118000", STELE_TRANSACTION_BYTES_MAX: "120000" } },
      "STELE_TRANSACTION_BYTES_MAX must be at least 122608 to carry the longest event (contentBytesMax and extensionsBytesMax)",
    ],
    [
      {
        env: { STELE_CONTENT_BYTES_MAX: "118000" },
        argv: ["--config", "f"],
        files: { f: '{"groups":[{"id":"1","endpoints":["http://127.0.0.1:8545"]}]}' },
      },
      "STELE_TRANSACTION_BYTES_MAX must be at least 122608 to carry the longest event (contentBytesMax and extensionsBytesMax)",
    ],
    [
      { env: { STELE_REQUEST_BODY_BYTES_MAX: "1024" } },
      "STELE_REQUEST_BODY_BYTES_MAX must be at least 91990 to carry the longest event (contentBytesMax and extensionsBytesMax)",
    ],
    [
      { env: { STELE_CALLBACK_BACKOFF_MAX_MS: "500" } },
      "STELE_CALLBACK_BACKOFF_MAX_MS (500) is below STELE_CALLBACK_BACKOFF_MIN_MS (1000)",
    ],
  ])("refuses the input %j", (given, problem) => {
    const problems = problemsOf(given);
    expect(problems).toEqual([problem]);
  });

  test("reports every problem at once", () => {
    const given = { env: { STELE_PROT: "1", STELE_PORT: "x" }, argv: ["--hots=y"], files: {} };
    expect(problemsOf(given)).toHaveLength(3);
  });

  test("refuses a config file that is not JSON, with the reason", () => {
    const problems = problemsOf({ argv: ["--config", "f"], files: { f: "{port: 1}" } });
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(/^config file f cannot be used: .*JSON/);
  });

  test("cites nothing of a config file that is not JSON, which may be a secret, and names the line", () => {
    const text = '{\n  "port": 8080,\n  "databaseUrl": s3cret\n}';
    const [problem, ...others] = problemsOf({ argv: ["--config", "f"], files: { f: text } });
    expect(others).toEqual([]);
    expect(problem).toBe("config file f cannot be used: Unexpected token 's' in JSON (line 3 column 18)");
    expect(problemsOf({ argv: ["--config", "f"], files: { f: "s3cret" } })).toEqual([
      "config file f cannot be used: Unexpected token 's' in JSON",
    ]);
  });

  test("ignores a byte order mark at the beginning of a config file", () => {
    expect(problemsOf({ argv: ["--config", "f"], files: { f: '\uFEFF{"port": "x"}' } })).toEqual([
      'port in f: "x" is not an integer from 0 to 65535',
    ]);
  });

  test("names the line of a syntax error in a config file", () => {
    const problems = problemsOf({ argv: ["--config", "f"], files: { f: '{\n  "port": 1,\n}' } });
    expect(problems).toEqual([expect.stringMatching(/ at position 15 \(line 3 column 1\)$/)]);
  });

  test("--check-config prints each setting with its value and origin", () => {
    const outcome = load({ argv: ["--check-config", "--port", "81"], env: { STELE_BASE_PATH: "/b" } });
    const output = outcome.status === "checked" ? outcome.output.split("\n") : [];
    expect(output).toContain("port = 81  (--port)");
    expect(output).toContain('basePath = "/b"  (STELE_BASE_PATH)');
    expect(output).toContain('host = "127.0.0.1"  (default)');
    expect(output).toContain("advertisedAddress = (derived)  (default)");
  });

  test("--check-config refuses everything that a start would refuse", () => {
    expect(load({ argv: ["--check-config", "--port", "x"] }).status).toBe("refused");
  });

  test.each(["--help", "-h"])("%s lists every flag, even if other arguments are wrong", (flag) => {
    const outcome = load({ argv: [flag, "--nonsense"] });
    const output = outcome.status === "printed" ? outcome.output : "";
    expect(output).toContain("--callback-allow");
    expect(output).toContain("stele --help lists the other commands");
    expect(output).not.toMatch(/\]\(|below/);
  });

  test("--help prints a link to a page as its path, such as docs/access.md, and any other link as its text", () => {
    const outcome = load({ argv: ["--help"] });
    const output = outcome.status === "printed" ? outcome.output : "";
    expect(output).toContain("see docs/access.md.");
    expect(output).toContain("serves its console at `/console`");
    expect(output).not.toMatch(/\]\(|docs\/(?![\w-]+\.md)/);
  });

  test("--version prints the version", () => {
    expect(load({ argv: ["--version"] })).toEqual({ status: "printed", output: "stele 1.2.3\n" });
  });
});
