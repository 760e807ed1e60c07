import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { commandNames, toCommands, toOpenCommand, toTailCommand } from "./commands.ts";

const options = { url: "http://127.0.0.1:8080/one", hasKey: false, formatKey: "svc-format", mqtt: "127.0.0.1:1884" };
const draft = { topic: "it's/$HOME `x`", content: '{"a": "\'$(id)\' \\\\n"}\nsecond line', isJson: true };

/** The arguments that a shell makes of a command line and passes to another program. */
function argumentsOf(command: string, shell = "sh"): readonly string[] {
  const input = command.replace(/^\S+/, "env printf '%s\\0'");
  return execFileSync(shell, { input }).toString().split("\0").slice(0, -1);
}

describe("commands", () => {
  it("commands pass every character through the shell to curl", () => {
    const { topic, content } = draft;
    expect(argumentsOf(toCommands(draft, options).curl)).toEqual([
      "http://127.0.0.1:8080/one/rest/publish",
      "--data-urlencode",
      `topic=${topic}`,
      "--data-urlencode",
      `content=${content}`,
      "-d",
      "svc-format=json",
    ]);
  });

  it("commands contain control characters as numbers, which no terminal takes as editing keys", () => {
    const content = "\u0015; id; echo 'a\\b'\r\u001b[201~\u007f\u0080\té\n";
    const commands = toCommands({ ...draft, content }, options);
    for (const name of commandNames) expect(commands[name]).not.toMatch(/(?!\n)\p{Cc}/u);
    expect(commands.TypeScript).toContain("\\u0015; id; echo 'a\\\\b'\\r\\u001b[201~\\u007f\\u0080\\té\\n");
    expect(argumentsOf(commands.curl, "bash")).toContain(`content=${content}`);
  });

  it("commands exist for no shell if the content has a NUL, at which an argument ends", () => {
    const { TypeScript, ...inShell } = toCommands({ ...draft, content: "all\0 of it" }, options);
    expect(TypeScript).toContain("all\\u0000 of it");
    for (const command of Object.values(inShell)) expect(command).toMatch(/^# .*U\+0000/);
  });

  it("commands exist for no MQTT client if the broker serves no MQTT, since another program may have the port", () => {
    expect(toCommands(draft, { ...options, mqtt: "off" }).mosquitto_pub).toMatch(/^# .* no MQTT/);
    expect(toCommands(draft, { ...options, mqtt: undefined }).mosquitto_pub).toContain(" -p 1883 ");
  });

  it("commands exist only for a content that fits into an argument, which has at most 128 KiB", () => {
    const longest = 2 ** 17 - 1 - "content=".length;
    for (const content of ["x".repeat(longest), "\u20ac".repeat(longest / 3)]) {
      const { curl, TypeScript } = toCommands({ ...draft, content }, options);
      expect(argumentsOf(curl)).toContain(`content=${content}`);
      expect(TypeScript).toContain(content);
    }
    for (const content of ["x".repeat(longest + 1), "\u20ac".repeat(longest / 3 + 1), "x".repeat(2 ** 20)]) {
      const { TypeScript, ...inShell } = toCommands({ ...draft, content }, options);
      expect(TypeScript).toMatch(/^\/\/ .* too long/);
      for (const command of Object.values(inShell)) expect(command).toMatch(/^# .* longer than an argument/);
    }
  });

  it("commands publish a longer content from a file, with the draft's topic and extension", () => {
    const { curl: shown } = toCommands({ ...draft, content: "x".repeat(2 ** 17) }, options);
    const command = shown.replace(/^#.*\n/, "").replace("< FILE", "< /dev/null");
    const format = ["--ext", "svc-format=json"];
    expect(argumentsOf(command)).toEqual(["pub", "--url", options.url, ...format, "--whole", "--", draft.topic]);
    const withNul = toCommands({ ...draft, topic: "a\0", content: "x".repeat(2 ** 17) }, options);
    expect(withNul.stele).toMatch(/^# .*U\+0000/);
  });

  it("commands do not exist for stele if the content has U+FFFD, which stele refuses", () => {
    const { stele, curl } = toCommands({ ...draft, content: "\uFFFD" }, options);
    expect(stele).toMatch(/^# .*U\+FFFD/);
    expect(curl).toContain("\uFFFD");
  });

  it("commands pass to stele and mosquitto_pub a content that looks like a flag", () => {
    const dashes = { ...draft, content: "--help", isJson: false };
    expect(argumentsOf(toCommands(dashes, options).stele)).toEqual([
      "pub",
      "--url",
      options.url,
      "--",
      draft.topic,
      "--help",
    ]);
    expect(argumentsOf(toCommands(dashes, options).mosquitto_pub).slice(-4)).toEqual([
      "-t",
      draft.topic,
      "-m",
      "--help",
    ]);
    expect(argumentsOf(toCommands(draft, options).mosquitto_pub).slice(0, 4)).toEqual([
      "-h",
      "127.0.0.1",
      "-p",
      "1884",
    ]);
  });

  it("commands drop the brackets of an IPv6 address for mosquitto_pub only", () => {
    const { mosquitto_pub: command, curl } = toCommands(draft, {
      ...options,
      url: "http://[::1]:8080",
      mqtt: undefined,
    });
    expect(argumentsOf(command).slice(0, 4)).toEqual(["-h", "::1", "-p", "1883"]);
    expect(curl).toContain("'http://[::1]:8080/rest/publish'");
  });

  it.each(["0.0.0.0:1884", "[::]:1884"])(
    "commands name the host of the page for mosquitto_pub if MQTT listens on %s",
    (mqtt) => {
      const { mosquitto_pub: command } = toCommands(draft, { ...options, url: "http://broker.example:8080", mqtt });
      expect(argumentsOf(command).slice(0, 4)).toEqual(["-h", "broker.example", "-p", "1884"]);
    },
  );

  it("commands read the key from the environment instead of containing it", () => {
    const withKey = toCommands(draft, { ...options, hasKey: true });
    expect(withKey.curl).toContain('"authorization: Bearer $STELE_KEY"');
    expect(withKey.TypeScript).toContain("key: process.env.STELE_KEY");
    expect(commandNames.every((name) => withKey[name].length > 0)).toBe(true);
  });

  it("commands encode the topic of open as a form field and that of tail as a URL parameter", () => {
    expect(argumentsOf(toOpenCommand("a b", options))).toEqual([
      "http://127.0.0.1:8080/one/rest/open",
      "--data-urlencode",
      "topic=a b",
    ]);
    expect(toTailCommand("a/#", options)).toBe("curl -N 'http://127.0.0.1:8080/one/tail?topic=a%2F%23'");
  });
});
