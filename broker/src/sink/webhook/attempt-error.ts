/** Why an attempt came to nothing, said by ourselves: the message is for people and holds no secret. */
export class AttemptError extends Error {
  override readonly name = "AttemptError";
}
