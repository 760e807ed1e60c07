/** The fields of the publish form. */
export interface Draft {
  readonly topic: string;
  readonly content: string;
  readonly isJson: boolean;
}

export interface CommandOptions {
  readonly url: string;
  /**
   * Whether the page has a key. Commands name the variable STELE_KEY, so that the key is neither on the page nor in the shell's history. While curl and
   * mosquitto_pub run, their command lines still contain it.
   */
  readonly hasKey: boolean;
  /** Name of the extension that says that a content is JSON. */
  readonly formatKey: string;
  /** host:port of MQTT, if known. */
  readonly mqtt: string | undefined;
}

/** Addresses of a listener that serves every address of its machine. Nobody can connect to them from another machine. */
const anyHosts: ReadonlySet<string> = new Set(["0.0.0.0", "[::]"]);

/** In place of a command: an argument of a program ends at the character NUL, so the event would be cut off there. */
const noShellCommand = "# A command cannot contain the character U+0000. The TypeScript program can.";

/** In place of a command: for `stele`, U+FFFD means that its argument was not UTF-8. */
const noSteleCommand = "# stele takes no argument with the character U+FFFD. The other clients do.";

/** An argument of a program has at most 128 KiB on Linux, and a character of a text at most three bytes. A longer command would also slow each key stroke. */
const contentCharactersMax = 40_000;

/** In place of a command or program. */
const noLongCommand = "The content is too long for a command. Publish it from a file: stele pub TOPIC --whole < FILE";

/** For each kind of client, the command or program that publishes the form's event, or a comment that says why there is none. */
export function toCommands(draft: Draft, options: CommandOptions): Readonly<Record<CommandName, string>> {
  if (draft.content.length > contentCharactersMax) {
    const inShell = `# ${noLongCommand}`;
    return { curl: inShell, TypeScript: `// ${noLongCommand}`, stele: inShell, mosquitto_pub: inShell };
  }
  const hasNul = `${draft.topic}${draft.content}`.includes("\0");
  const inShell = (to: typeof toCurl): string => (hasNul ? noShellCommand : to(draft, options));
  return {
    curl: inShell(toCurl),
    TypeScript: toTypeScript(draft, options),
    stele: draft.content.includes("\uFFFD") ? noSteleCommand : inShell(toStele),
    mosquitto_pub: inShell(toMosquitto),
  };
}

export const commandNames = ["curl", "TypeScript", "stele", "mosquitto_pub"] as const;
export type CommandName = (typeof commandNames)[number];

export function toOpenCommand(topic: string, { url, hasKey }: CommandOptions): string {
  return lines([`curl ${quote(`${url}/rest/open`)}`, ...keyOf(hasKey), `--data-urlencode ${quote(`topic=${topic}`)}`]);
}

export function toTailCommand(topic: string, { url, hasKey }: CommandOptions): string {
  return lines([`curl -N ${quote(`${url}/tail?topic=${encodeURIComponent(topic)}`)}`, ...keyOf(hasKey)]);
}

function toCurl({ topic, content, isJson }: Draft, { url, hasKey, formatKey }: CommandOptions): string {
  return lines([
    `curl ${quote(`${url}/rest/publish`)}`,
    ...keyOf(hasKey),
    `--data-urlencode ${quote(`topic=${topic}`)}`,
    `--data-urlencode ${quote(`content=${content}`)}`,
    ...(isJson ? [`-d ${formatKey}=json`] : []),
  ]);
}

function toTypeScript({ topic, content, isJson }: Draft, { url, hasKey, formatKey }: CommandOptions): string {
  const key = hasKey ? ", key: process.env.STELE_KEY" : "";
  const extensions = isJson ? `extensions: { "${formatKey}": "json" }, ` : "";
  return [
    'import { Stele } from "@stele/client";',
    "",
    `const stele = new Stele({ url: ${JSON.stringify(url)}${key} });`,
    `await stele.publish(${toLiteral(topic)}, ${toLiteral(content)}, { ${extensions}once: true });`,
  ].join("\n");
}

function toStele({ topic, content, isJson }: Draft, { url, formatKey }: CommandOptions): string {
  const format = isJson ? [`--ext ${formatKey}=json`] : [];
  return lines([`stele pub --url ${quote(url)}`, ...format, `-- ${quote(topic)} ${quote(content)}`]);
}

function toMosquitto({ topic, content, isJson }: Draft, { url, hasKey, formatKey, mqtt }: CommandOptions): string {
  const { hostname } = new URL(url);
  const [listener = "", port = "1883"] = (mqtt ?? `${hostname}:1883`).split(/:(?=\d+$)/);
  const host = anyHosts.has(listener) ? hostname : listener;
  return lines([
    `mosquitto_pub -h ${quote(host.replaceAll(/[[\]]/g, ""))} -p ${port} -V mqttv5 -q 1`,
    ...(hasKey ? ['-u stele -P "$STELE_KEY"'] : []),
    ...(isJson ? [`-D publish user-property ${formatKey} json`] : []),
    `-t ${quote(topic)}`,
    `-m ${quote(content)}`,
  ]);
}

function keyOf(hasKey: boolean): readonly string[] {
  return hasKey ? ['-H "authorization: Bearer $STELE_KEY"'] : [];
}

/** Control characters except newline. */
const controls = /(?!\n)\p{Cc}/gu;

/**
 * Between single quotes, a shell treats only the closing quote specially. But a terminal may take a pasted control character as an editing key, such as one
 * that erases the line with its opening quote, or a tab, which completes the name of a file and closes the quote; the shell would then run the rest of the
 * text. So these characters are written as octal numbers.
 */
function quote(text: string): string {
  if (text.search(controls) < 0) return `'${text.replaceAll("'", "'\\''")}'`;
  return `$'${text.replaceAll(/[\\']/g, "\\$&").replaceAll(controls, toOctal)}'`;
}

function toOctal(character: string): string {
  return Array.from(new TextEncoder().encode(character), (byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
}

/** A string of TypeScript, without control characters: JSON has DEL as it is, which erases a character in a prompt of Node. */
function toLiteral(text: string): string {
  return JSON.stringify(text).replaceAll(
    controls,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

function lines(parts: readonly string[]): string {
  return parts.join(" \\\n  ");
}
