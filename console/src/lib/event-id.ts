export interface EventPlace {
  readonly sequence: number;
  readonly block: number;
}

/** Sequence and block of an eventId such as `2cf24dba-59-1124`; undefined for any other text. */
export function parseEventId(eventId: string): EventPlace | undefined {
  const [, sequence, block] = /^[0-9a-f]{8}-(\d{1,16})-(\d{1,16})$/.exec(eventId) ?? [];
  return sequence === undefined || block === undefined
    ? undefined
    : { sequence: Number(sequence), block: Number(block) };
}

/** The block of a place in a tail, which is an eventId, a block such as `@1123`, or `OFFSET_FIRST` (-1); undefined for any other text. */
export function blockOfPlace(place: string): number | undefined {
  if (place === "OFFSET_FIRST") return -1;
  const [, block] = /^@(\d{1,16})$/.exec(place) ?? [];
  return block === undefined ? parseEventId(place)?.block : Number(block);
}
