import { Ajv } from "ajv";
import formats from "ajv-formats";

/** A received message. */
export interface Arrived {
  /** Undefined if the protocol has no content type. */
  readonly contentType?: string | undefined;
  readonly headers?: object;
  readonly payload: unknown;
}

export interface Server {
  readonly host: string;
  readonly protocol: string;
  readonly pathname?: string;
}

interface Message {
  readonly contentType: string;
  readonly headers?: object;
}

interface Content {
  readonly servers: Readonly<Record<string, Server>>;
  readonly operations: Readonly<Record<string, { readonly messages: readonly { readonly $ref: string }[] }>>;
  readonly components: { readonly messages: Readonly<Record<string, Message>> };
}

/** An AsyncAPI document, with which tests compare received messages. */
export class AsyncDocument {
  readonly #ajv = new Ajv({ strict: false });
  readonly #content: Content;

  constructor(text: string) {
    this.#content = JSON.parse(text) as Content; // A test of the broker validates it.
    formats.default(this.#ajv);
    this.#ajv.addFormat("base64", /^[A-Za-z0-9+/]*={0,2}$/);
    this.#ajv.addSchema({ $id: "document", components: this.#content.components });
  }

  server(name: string): Server {
    const server = this.#content.servers[name];
    if (server === undefined) throw new Error(`no server ${name}`);
    return server;
  }

  /** The URL of the server of that name. */
  urlOf(name: string): URL {
    const { protocol, host, pathname = "" } = this.server(name);
    return new URL(`${protocol}://${host}${pathname}`);
  }

  /** Names of the messages of this operation that `arrived` matches. */
  matchesOf(operation: string, arrived: Arrived): readonly string[] {
    const references = this.#content.operations[operation]?.messages ?? [];
    const names = references.map(({ $ref }) => $ref.replace(/.*\//, ""));
    return names.filter((name) => this.messageFits(name, arrived));
  }

  /** Whether the received message matches the message of that name. */
  messageFits(name: string, { contentType, headers = {}, payload }: Arrived): boolean {
    const message = this.#content.components.messages[name];
    if (message === undefined || (contentType !== undefined && contentType !== message.contentType)) return false;
    const isValid = (part: string, value: unknown) =>
      this.#ajv.validate({ $ref: `document#/components/messages/${name}/${part}` }, value);
    return isValid("payload", payload) && (message.headers === undefined || isValid("headers", headers));
  }
}
