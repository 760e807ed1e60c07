import type { ServerResponse } from "node:http";
import { accept, type Behaviour } from "./receiver.ts";

/** Accepts after a delay. */
export function slow(delayMs: number): Behaviour {
  return (attempt, response) => void setTimeout(() => accept(attempt, response), delayMs);
}

/** Answers with a status and no body. */
export function answerStatus(status: number, headers: Readonly<Record<string, string>> = {}): Behaviour {
  return (_attempt, response) => void response.writeHead(status, headers).end();
}

/** Never answers. */
export const hang: Behaviour = () => {};

/** Redirects to another address. */
export function redirectTo(url: string): Behaviour {
  return answerStatus(307, { location: url });
}

/** A 500 whose body never ends. */
export const endlessFailure: Behaviour = (_attempt, response) => pourForEver(response.writeHead(500));

/** A 200 whose body never ends. */
export const endlessSuccess: Behaviour = (_attempt, response) => pourForEver(response.writeHead(200));

/** Resets the connection instead of answering. */
export const reset: Behaviour = (_attempt, response) => void response.socket?.resetAndDestroy();

const piece = Buffer.alloc(16_384, "x");

function pourForEver(response: ServerResponse): void {
  const pour = (): void => {
    while (!response.destroyed && response.write(piece));
  };
  response.on("drain", pour);
  pour();
}
