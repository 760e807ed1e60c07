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
  /** host:port of MQTT without TLS. Undefined if the address is not known; `off` if the broker serves none. */
  readonly mqtt: string | undefined;
}

/** Addresses of a listener that serves every address of its machine. Nobody can connect to them from another machine. */
const anyHosts: ReadonlySet<string> = new Set(["0.0.0.0", "[::]"]);

/** In place of a command: an argument of a program ends at the character NUL, so the event would be cut off there. */
const noShellCommand = "# A command cannot contain the character U+0000. The TypeScript program can.";

/** In place of a command: for `stele`, U+FFFD means that its argument was not UTF-8. */
const noSteleCommand = "# stele takes no argument with the character U+FFFD. The other clients do.";

/** In place of a command: another program may have the usual port of MQTT, and would take the event. */
const noMqttCommand = "# The broker serves no MQTT without TLS.";

/** Before a command for a file that is shown instead. */
const noLongCommand = "# The content is longer than an argument of a program can be. Publish it from a file:";

/** In place of the TypeScript program: to make and show it would slow each key stroke. */
const noLongProgram = "// The content is too long to show it in a program. Let the program read it from a file.";

/** Bytes of an argument of a program on Linux: 128 KiB with the NUL that ends it. */
const argumentBytesMax = 2 ** 17 - 1;

/** For each kind of client, the command or program that publishes the form's event, or a comment that says why there is none. */
export function toCommands(draft: Draft, options: CommandOptions): Readonly<Record<CommandName, string>> {
  if (!isArgument(toField(draft))) {
    const inShell = draft.topic.includes("\0") ? noShellCommand : `${noLongCommand}\n${toSteleOfFile(draft, options)}`;
    return { curl: inShell, TypeScript: noLongProgram, stele: inShell, mosquitto_pub: inShell };
  }
  const hasNul = `${draft.topic}${draft.content}`.includes("\0");
  const inShell = (to: typeof toCurl): string => (hasNul ? noShellCommand : to(draft, options));
  return {
    curl: inShell(toCurl),
    TypeScript: toTypeScript(draft, options),
    stele: draft.content.includes("\uFFFD") ? noSteleCommand : inShell(toStele),
    mosquitto_pub: options.mqtt === "off" ? noMqttCommand : inShell(toMosquitto),
  };
}

/** Whether a text is short enough for an argument. Counts the bytes, up to three for a character, only if the characters leave a doubt. */
function isArgument(text: string): boolean {
  if (text.length * 3 <= argumentBytesMax) return true;
  return text.length <= argumentBytesMax && new TextEncoder().encode(text).length <= argumentBytesMax;
}

export const commandNames = ["curl", "TypeScript", "stele", "mosquitto_pub"] as const;
export type CommandName = (typeof commandNames)[number];

export function toOpenCommand(topic: string, { url, hasKey }: CommandOptions): string {
  return lines([`curl ${quote(`${url}/rest/open`)}`, ...keyOf(hasKey), `--data-urlencode ${quote(`topic=${topic}`)}`]);
}

export function toTailCommand(topic: string, { url, hasKey }: CommandOptions): string {
  return lines([`curl -N ${quote(`${url}/tail?topic=${encodeURIComponent(topic)}`)}`, ...keyOf(hasKey)]);
}

/** The longest argument of the commands. */
function toField({ content }: Draft): string {
  return `content=${content}`;
}

function toCurl(draft: Draft, { url, hasKey, formatKey }: CommandOptions): string {
  const { topic, isJson } = draft;
  return lines([
    `curl ${quote(`${url}/rest/publish`)}`,
    ...keyOf(hasKey),
    `--data-urlencode ${quote(`topic=${topic}`)}`,
    `--data-urlencode ${quote(toField(draft))}`,
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

function toStele(draft: Draft, options: CommandOptions): string {
  return lines([...flagsOfStele(draft, options), `-- ${quote(draft.topic)} ${quote(draft.content)}`]);
}

function toSteleOfFile(draft: Draft, options: CommandOptions): string {
  return lines([...flagsOfStele(draft, options), `--whole -- ${quote(draft.topic)} < FILE`]);
}

function flagsOfStele({ isJson }: Draft, { url, formatKey }: CommandOptions): readonly string[] {
  return [`stele pub --url ${quote(url)}`, ...(isJson ? [`--ext ${formatKey}=json`] : [])];
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
 * Between single quotes, a shell treats only the closing quote specially. But a terminal may take a pasted control character as an editing key. One such key
 * erases the line with its opening quote; a tab may complete the name of a file, and close the quote. The shell would then run the rest of the text. So these
 * characters are written as octal numbers.
 */
function quote(text: string): string {
  if (text.search(controls) < 0) return `'${text.replaceAll("'", "'\\''")}'`;
  return `$'${text.replaceAll(/[\\']/g, "\\$&").replaceAll(controls, toOctal)}'`;
}

/** The bytes of a control character. In UTF-8, those from U+0080 to U+009F are the byte 0o302 and then their own number. */
function toOctal(character: string): string {
  const code = character.charCodeAt(0);
  return `${code < 0x80 ? "" : "\\302"}\\${code.toString(8).padStart(3, "0")}`;
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
