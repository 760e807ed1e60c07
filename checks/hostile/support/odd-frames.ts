import { toBytes, type Version, versions } from "../../conformance/stomp/frames.ts";
import { edgeNumbers, type OddValues } from "./odd-values.ts";

const textMax = 2_000;
const names = ["t", "u", "s", "r", "", "0"];

/** A CONNECT frame; one in five has odd headers. */
export function oddHello(values: OddValues): { readonly bytes: Buffer; readonly version: Version } {
  const { random } = values;
  const version = random.pick(versions);
  const usual: Readonly<Record<string, string>> = version === "1.0" ? {} : { "accept-version": version, host: "x" };
  const odd = { "heart-beat": random.pick(["0,0", "1,1", "x", ...edgeNumbers]), login: lineOf(values) };
  const headers = random.below(5) === 0 ? { ...usual, ...odd } : usual;
  return { bytes: toBytes({ command: random.pick(["CONNECT", "STOMP"]), headers }, version), version };
}

/** A random frame of a connected client. Names come from a short list, so that frames of one connection refer to each other. */
export function oddFrame(values: OddValues, version: Version): Buffer {
  const { random } = values;
  const make = random.pick([
    send,
    send,
    send,
    subscribe,
    subscribe,
    acknowledge,
    acknowledge,
    transact,
    transact,
    rare,
  ]);
  const { command, headers, body = "" } = make(values);
  const receipt = random.below(2) === 0 ? {} : { receipt: random.pick([...names, values.text(textMax)]) };
  return toBytes({ command, headers: { ...headers, ...receipt }, body }, version);
}

interface OddFrame {
  readonly command: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

function send(values: OddValues): OddFrame {
  const { random } = values;
  const body = values.text(random.pick([0, 20, 70_000]));
  const length = random.pick([Buffer.byteLength(body), Buffer.byteLength(body), random.below(20)]);
  return {
    command: "SEND",
    headers: {
      ...some(values, { destination: values.parameter("topic", textMax) }),
      "content-length": String(length),
      ...oddly(values, { "content-type": values.text(textMax) }),
      ...oddly(values, { groupId: values.parameter("groupId", textMax) }),
      ...oddly(values, { transaction: random.pick(names) }),
      ...oddly(values, { "svc-publish-key": random.pick(["k", values.text(300)]) }),
      ...oddly(values, { [values.text(100)]: values.text(textMax) }),
      ...oddly(values, { [`svc-${values.text(20)}`]: values.text(textMax) }),
      ...oddly(values, {
        "svc-token": values.text(50),
        "svc-retain": "true",
        "svc-expires-at": random.pick(edgeNumbers),
      }),
    },
    body,
  };
}

function subscribe(values: OddValues): OddFrame {
  const { random } = values;
  return {
    command: "SUBSCRIBE",
    headers: {
      ...some(values, { id: random.pick(names) }),
      ...some(values, { destination: oddDestination(values) }),
      ...oddly(values, { ack: random.pick(["auto", "client", "client-individual", "x"]) }),
      ...oddly(values, { "prefetch-count": random.pick(["1", "1000", ...edgeNumbers]) }),
      ...oddly(values, { eventId: values.parameter("offset", textMax) }),
      ...oddly(values, { "svc-subscriptionId": values.subscriptionId() }),
      ...oddly(values, { groupId: values.parameter("groupId", textMax) }),
      ...oddly(values, { selector: "a = 1" }),
    },
  };
}

function acknowledge(values: OddValues): OddFrame {
  const { random } = values;
  const eventId = values.eventId();
  return {
    command: random.pick(["ACK", "NACK"]),
    headers: {
      ...some(values, {
        id: random.pick([`1-${eventId}`, `2-${eventId}`, eventId, ...edgeNumbers, values.text(textMax)]),
      }),
      ...some(values, { "message-id": random.pick([eventId, values.text(textMax)]) }),
      ...some(values, { subscription: random.pick(names) }),
      ...oddly(values, { transaction: random.pick(names) }),
      ...oddly(values, { eventId }),
    },
  };
}

function transact(values: OddValues): OddFrame {
  const { random } = values;
  const command = random.pick(["BEGIN", "BEGIN", "COMMIT", "ABORT"]);
  return { command, headers: some(values, { transaction: random.pick([...names, values.text(textMax)]) }) };
}

function rare(values: OddValues): OddFrame {
  const { random } = values;
  const command = random.pick(["UNSUBSCRIBE", "UNSUBSCRIBE", "DISCONNECT", "CONNECT", "MESSAGE", "x"]);
  return { command, headers: { ...some(values, { id: random.pick(names) }), destination: oddDestination(values) } };
}

function oddDestination(values: OddValues): string {
  const { random } = values;
  const one = (): string => values.parameter("topic", textMax);
  return random.pick([one, one, () => `${one()},${one()}`, () => ",", () => `${one()},`])();
}

/** Text for a header of CONNECT, which has no escape sequences. */
function lineOf(values: OddValues): string {
  return values.text(100).replaceAll(/[\r\n:\0]/g, "");
}

/** The given headers nine times out of ten, otherwise none. */
function some({ random }: OddValues, headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return random.below(10) === 0 ? {} : headers;
}

/** The given headers one time in four, otherwise none. */
function oddly({ random }: OddValues, headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return random.below(4) === 0 ? headers : {};
}
