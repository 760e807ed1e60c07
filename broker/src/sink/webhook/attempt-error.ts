/** Why an attempt failed, in our own words: the message is for people and contains no secret. */
export class AttemptError extends Error {
  override readonly name = "AttemptError";
}
