import { request } from "undici";

/** One SSE event of a tail. */
export interface TailFrame {
  readonly id: string | undefined;
  /** `message` for an event of the broker. */
  readonly name: string;
  /** Empty if the frame only carries a new id. */
  readonly data: string;
}

export interface TailedEvent {
  readonly topic: string;
  readonly text: string;
  readonly eventId: string;
}

/** A client of `/tail` that reconnects with its last id, as EventSource does. */
export class TailClient {
  readonly events: TailedEvent[] = [];
  /** Names of the frames that were not events, in order. */
  readonly notices: string[] = [];
  /** Number of streams that the broker has started. */
  opened = 0;
  lastId: string | undefined;
  readonly #query: string;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(query: string, headers: Readonly<Record<string, string>> = {}) {
    this.#query = query;
    this.#headers = headers;
  }

  /**
   * Opens a connection and reads it until it ends, or until `shouldContinue` returns false for a frame. @throws the connection's error, or an Error with the
   * status and body if the broker refuses.
   */
  async read(brokerUrl: string, shouldContinue: (frame: TailFrame) => boolean): Promise<void> {
    const last = this.lastId === undefined ? {} : { "last-event-id": this.lastId };
    const answer = await request(`${brokerUrl}/tail?${this.#query}`, {
      headers: { ...this.#headers, ...last },
      bodyTimeout: 60_000,
    });
    if (answer.statusCode !== 200) throw new Error(`${answer.statusCode}: ${await answer.body.text()}`);
    this.opened += 1;
    for await (const frame of framesOf(answer.body)) {
      this.#take(frame);
      if (!shouldContinue(frame)) break; // leaving the loop destroys the body
    }
  }

  #take({ id, name, data }: TailFrame): void {
    if (id !== undefined) this.lastId = id;
    if (data === "") return;
    if (name !== "message") {
      this.notices.push(name);
      return;
    }
    const { topic, content, eventId } = JSON.parse(data) as Record<"topic" | "content" | "eventId", string>; // The broker sends an Event.
    this.events.push({ topic, text: Buffer.from(content, "base64").toString(), eventId });
  }
}

/** The SSE events of a body. Drops an incomplete event at its end, as browsers do. */
export async function* framesOf(body: AsyncIterable<Buffer>): AsyncGenerator<TailFrame> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of body) {
    text += decoder.decode(chunk, { stream: true });
    for (let end = text.indexOf("\n\n"); end !== -1; end = text.indexOf("\n\n")) {
      yield toFrame(text.slice(0, end));
      text = text.slice(end + 2);
    }
  }
}

function toFrame(text: string): TailFrame {
  const fields = new Map(
    text.split("\n").map((line) => /^([a-z]*):? ?(.*)$/s.exec(line)?.slice(1) as [string, string]),
  );
  return { id: fields.get("id"), name: fields.get("event") ?? "message", data: fields.get("data") ?? "" };
}
