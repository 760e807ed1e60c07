import { fileURLToPath } from "node:url";
import { afterAll, beforeAll } from "vitest";
import { canImport, PythonScript } from "../../harness/python.ts";
import { Script } from "../../harness/script.ts";
import { until } from "../../harness/until.ts";

/** An event as the libraries of a receiver understand it. */
export interface SeenEvent {
  readonly id: string;
  readonly topic: string;
  /** In Base64. */
  readonly content: string;
  /** The extension `svc-colour`. */
  readonly colour: string;
}

/** A request as the libraries of a receiver understand it. */
export interface SeenRequest {
  readonly path: string;
  /** `webhook-id`. */
  readonly id: string;
  /** `content-type`. */
  readonly type: string;
  /** The signatures in `webhook-signature`. */
  readonly signatures: readonly string[];
  /** Status of the receiver's answer. */
  readonly status: number;
  /** `cloudevents`, `event`, `ping`, or the method of a JSON-RPC call; undefined if the signature does not verify. */
  readonly kind?: string;
  readonly events: readonly SeenEvent[];
  /** Why the signature does not verify. */
  readonly error?: string;
}

/** A receiver's language, with packages from the registry of that language. */
export interface Language {
  readonly name: string;
  readonly canRun: boolean;
  /** Whether the receiver verifies Ed25519 signatures too. The packages verify only symmetric ones; receiver.mjs verifies the others itself. */
  readonly verifiesAsymmetric: boolean;
  readonly start: () => Script;
}

const file = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

export const languages: readonly Language[] = [
  {
    name: "standardwebhooks and cloudevents of npm",
    canRun: true,
    verifiesAsymmetric: true,
    start: () => new Script(process.execPath, [file("receiver.mjs")]),
  },
  {
    name: "standardwebhooks and cloudevents of PyPI",
    canRun: canImport("import standardwebhooks, cloudevents.core.bindings.http"),
    verifiesAsymmetric: false,
    start: () => new PythonScript(file("receiver.py"), []),
  },
];

/** A receiver in a separate process. */
export class WebhookReceiver implements Disposable {
  /** As in {@link Language}. */
  readonly verifiesAsymmetric: boolean;
  /** Every request, in order of arrival. */
  readonly requests: SeenRequest[] = [];
  readonly #accepted = new Map<string, Map<string, SeenEvent>>();
  readonly #script: Script;
  readonly #port: number;
  #failure: unknown;
  #isEnded = false;

  private constructor(language: Language, script: Script, port: number) {
    this.verifiesAsymmetric = language.verifiesAsymmetric;
    this.#script = script;
    this.#port = port;
    void this.#take();
  }

  /** @param key verifies the signatures: a symmetric secret, or a public key `whpk_`; null if requests are not signed. */
  static async start(language: Language, key: string | null): Promise<WebhookReceiver> {
    const script = language.start();
    try {
      const { port } = await script.lines.next("listening");
      const receiver = new WebhookReceiver(language, script, Number(port));
      await receiver.verifyWith(key);
      return receiver;
    } catch (error) {
      script.kill();
      throw error;
    }
  }

  urlOf(path: string): string {
    return `http://127.0.0.1:${this.#port}/${path}`;
  }

  /** Makes the receiver verify signatures with only this key; null makes it accept requests without verifying them. */
  async verifyWith(key: string | null): Promise<void> {
    this.#script.do("verify", { key });
    await this.#script.lines.next("ready");
  }

  requestsTo(path: string): readonly SeenRequest[] {
    return this.requests.filter((request) => request.path === `/${path}`);
  }

  /** Events of the requests that the receiver accepted, each once. */
  eventsOf(path: string): readonly SeenEvent[] {
    return [...(this.#accepted.get(`/${path}`)?.values() ?? [])];
  }

  /** The number of events that `eventsOf` returns. */
  countOf(path: string): number {
    return this.#accepted.get(`/${path}`)?.size ?? 0;
  }

  async waitFor(what: string, condition: () => boolean): Promise<void> {
    await until(what, () => {
      if (this.#failure !== undefined) throw this.#failure;
      return condition();
    });
  }

  [Symbol.dispose](): void {
    this.#isEnded = true;
    this.#script.kill();
  }

  async #take(): Promise<void> {
    try {
      for (;;) this.#note((await this.#script.lines.next("request")) as unknown as SeenRequest); // As both scripts print it.
    } catch (error) {
      if (!this.#isEnded) this.#failure = error;
    }
  }

  #note(request: SeenRequest): void {
    this.requests.push(request);
    if (request.status >= 300) return;
    const events = this.#accepted.get(request.path) ?? new Map<string, SeenEvent>();
    this.#accepted.set(request.path, events);
    for (const event of request.events) if (!events.has(event.id)) events.set(event.id, event);
  }
}

/** Starts a receiver for the tests of the enclosing describe block. Returns a function that gives the tests this receiver. */
export function useWebhookReceiver(language: Language): () => WebhookReceiver {
  let receiver: WebhookReceiver | undefined;
  beforeAll(async () => {
    receiver = await WebhookReceiver.start(language, null);
  });
  afterAll(() => receiver?.[Symbol.dispose]());
  return () => {
    if (receiver === undefined) throw new Error("the receiver is not started yet");
    return receiver;
  };
}
