import { createDeferred, type Deferred } from "../../lib/deferred.ts";
import { answersWaitingMax, keptFrameBytes } from "./limits.ts";

/** Sends the answer to one frame; undefined if the frame asks for none. */
export type Answer = (() => void) | undefined;

interface Place {
  readonly bytes: number;
  isSettled: boolean;
  answer: Answer;
}

/** Sends the answers to the frames of one connection in the order of the frames, even if later answers are known earlier. */
export class Answers {
  readonly #places: Place[] = [];
  readonly #onLeft: () => void;
  #room: Deferred<void> | undefined;
  #bytes = 0;

  /** `onLeft` is called each time that an answer is known, after the answers that are due have been sent. */
  constructor(onLeft: () => void) {
    this.#onLeft = onLeft;
  }

  /** Whether answers wait. */
  get areAwaited(): boolean {
    return this.#places.length > 0;
  }

  /** Bytes that the waiting answers keep. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Reserves the next place in the order, for a frame with this receipt. Call the result once, when the answer is known. */
  expect(receipt = ""): (answer: Answer) => void {
    const place: Place = { bytes: keptFrameBytes + receipt.length, isSettled: false, answer: undefined };
    this.#places.push(place);
    this.#bytes += place.bytes;
    return (answer) => {
      place.isSettled = true;
      place.answer = answer;
      this.#leave();
    };
  }

  /** Undefined if there is room for more answers, else a promise that resolves when there is. */
  room(): Promise<void> | undefined {
    if (!this.#isFull) return undefined;
    this.#room ??= createDeferred();
    return this.#room.promise;
  }

  get #isFull(): boolean {
    return this.#places.length >= answersWaitingMax;
  }

  #leave(): void {
    for (let [first] = this.#places; first?.isSettled === true; [first] = this.#places) {
      this.#places.shift();
      this.#bytes -= first.bytes;
      first.answer?.();
    }
    this.#onLeft();
    if (this.#isFull) return;
    this.#room?.resolve();
    this.#room = undefined;
  }
}
