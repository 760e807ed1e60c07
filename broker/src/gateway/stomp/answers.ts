import { createDeferred, type Deferred } from "../../lib/deferred.ts";
import { answersWaitingMax, keptFrameBytes } from "./limits.ts";

/** Gives the answer of one frame; undefined where the frame asks for none. */
export type Answer = (() => void) | undefined;

interface Place {
  readonly bytes: number;
  isSettled: boolean;
  answer: Answer;
}

/** The answers to the frames of one connection. They leave in the order in which the frames came, whenever each is known. */
export class Answers {
  readonly #places: Place[] = [];
  readonly #onLeft: () => void;
  #room: Deferred<void> | undefined;
  #bytes = 0;

  /** `onLeft`: called when some have left. */
  constructor(onLeft: () => void) {
    this.#onLeft = onLeft;
  }

  /** Bytes that those which wait keep. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Takes the next place in the order, for a frame with this receipt. The result is to be called once, when the answer is known. */
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

  /** A promise until there is room for more. */
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
