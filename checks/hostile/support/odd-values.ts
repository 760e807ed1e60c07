import { randomUUID } from "node:crypto";
import type { Random } from "../../harness/random.ts";

/** Values that exist in the broker. Without them, most requests would fail at the first look-up. */
export interface KnownValues {
  readonly topics: readonly string[];
  readonly eventIds: readonly string[];
  readonly subscriptionIds: readonly string[];
}

/** Numbers at the limits of their types, written so that JSON and queries can contain them. */
export const edgeNumbers = [
  "0 -0 1 -1 2 1.5 99 100 4294967295 4294967296 8589934591 8589934592 999999999999999 9007199254740990",
  "9007199254740991 9007199254740992 9223372036854775807 9223372036854775808 -9223372036854775809",
  "18446744073709551616 1e15 1e21 1e308 1e400 -1e400 1e-400",
  "115792089237316195423570985008687907853269984665640564039457584007913129639936",
].flatMap((numbers) => numbers.split(" "));

const characters = [
  "",
  " ",
  "\t",
  "\0",
  "a\0b",
  "\n",
  "\r\n",
  "\u007f",
  "\u0080",
  "\u0081",
  "ä",
  "😀",
  "\ufeff",
  "\uffff",
];
const words = [
  "__proto__ constructor prototype toString hasOwnProperty null undefined true NaN Infinity 0x 0x0 0xg {} [] % %00 %zz",
  "+ # a/# +/+ $SYS/# a/ / // ../.. ' \" \\ ';-- <x> ${x} OFFSET_FIRST OFFSET_LAST svc- whsec_ whsec_AA== whsec_= 1 2",
].flatMap((line) => line.split(" "));
const oddTexts = [...characters, ...words];

const base64Edges = [
  "=",
  "====",
  "A",
  "AA",
  "AA=",
  "AA==",
  "AB==",
  "AAA",
  "AAA=",
  "AAB=",
  "AAAA",
  "_-__",
  "AA==AA==",
  "A A=",
  "AAAA\n",
];

const urls = [
  "http://127.0.0.1:65535/",
  "http://[::1]:65535/",
  "http://localhost:65535/",
  "http://127.0.0.1:65535/\u0000",
  "http://a..b/",
  "http://xn--/",
  "http://\u0000/",
  "http://ä.invalid/",
  `http://${"a".repeat(64)}.invalid/`,
  "http://127.0.0.1:65535/?\u0000=\ud83d\ude00#\u0007",
  "http://0x7f.1:65535/",
  "http://1:99999/",
  "http:",
  "//",
  "https://%/",
];

/** Makes random values that no real client sends, with some valid ones among them. */
export class OddValues {
  readonly random: Random;
  readonly #known: KnownValues;

  constructor(random: Random, known: KnownValues) {
    this.random = random;
    this.#known = known;
  }

  /** A text of at most `lengthMax` characters. */
  text(lengthMax: number): string {
    const { random } = this;
    const text = random.pick([
      () => random.pick(oddTexts),
      () => random.pick(edgeNumbers),
      () => random.pick(base64Edges),
      () => random.pick(this.#known.topics),
      () => this.eventId(),
      () => this.subscriptionId(),
      () => random.pick(urls),
      () => `${random.pick(this.#known.topics)}${random.pick(oddTexts)}`,
      () =>
        random
          .pick(["x", "a/", "\u0000", "9", "ä", "é", "="])
          .repeat(random.pick([42, 43, 64, 65, 256, 257, 2048, 5000, 70_000])),
      () => String.fromCodePoint(...Array.from({ length: random.below(20) }, () => random.below(0xd800))),
    ])();
    return text.slice(0, lengthMax);
  }

  /** Usually a valid value for a parameter of this name. */
  parameter(name: string, lengthMax: number): string {
    const { random } = this;
    if (random.below(3) === 0) return this.text(lengthMax);
    if (name === "topic") return random.pick([...this.#known.topics, "#", "fuzz/+"]);
    if (name === "eventId") return this.eventId();
    if (name === "offset") return random.pick(["OFFSET_FIRST", "OFFSET_LAST", this.eventId()]);
    if (name === "subscriptionId") return this.subscriptionId();
    if (name === "url") return random.pick(urls).slice(0, lengthMax);
    if (name === "content") return random.pick(base64Edges);
    if (name === "groupId") return random.pick(["1", "", " ", "2"]);
    return random.pick(edgeNumbers);
  }

  /** The eventId of an existing event, or another in the right form. */
  eventId(): string {
    const { random } = this;
    const known = random.pick(this.#known.eventIds);
    if (random.below(4) === 0) return known;
    const [digest, sequence, block] = known.split("-");
    return [digest, random.pick([sequence, ...edgeNumbers]), random.pick([block, ...edgeNumbers])].join("-");
  }

  subscriptionId(): string {
    return this.random.pick([...this.#known.subscriptionIds, randomUUID()]);
  }

  /** A JSON text of any type. */
  json(depth = 0): string {
    const { random } = this;
    const scalars = [
      () => random.pick(["null", "true", "false"]),
      () => random.pick(edgeNumbers),
      () => this.jsonText(),
    ];
    if (depth > 2) return random.pick(scalars)();
    return random.pick([
      ...scalars,
      () =>
        random.pick([
          "[]",
          "{}",
          '"\\ud800"',
          '"\\udc00a"',
          '{"__proto__":{"a":1}}',
          '{"toString":1,"valueOf":1}',
          '{"length":-1}',
          '{"toJSON":"x"}',
        ]),
      () => `[${Array.from({ length: random.below(4) }, () => this.json(depth + 1)).join(",")}]`,
      () =>
        `{${Array.from({ length: random.below(4) }, () => `${this.jsonText()}:${this.json(depth + 1)}`).join(",")}}`,
      () => deep(random),
    ])();
  }

  jsonText(): string {
    return JSON.stringify(this.text(this.random.pick([20, 300, 100_000])));
  }
}

/** JSON with up to 20,000 levels, far more than a recursive parser survives. */
function deep(random: Random): string {
  const levels = random.pick([10, 1000, 20_000]);
  const [open, close] = random.pick([
    ["[", "]"],
    ['{"a":', "}"],
    ['{"blockNumber":', "}"],
    ['{"__proto__":', "}"],
  ] as const);
  return `${open.repeat(levels)}1${close.repeat(levels)}`;
}
