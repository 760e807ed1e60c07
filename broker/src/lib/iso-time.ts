/** A time in milliseconds since the epoch as ISO 8601, in UTC. */
export function toIsoTime(ms: number): string {
  return new Date(ms).toISOString();
}
