/**
 * The WebAssembly module behind {@link HashHeap}, assembled here so that nobody needs a compiler: Keccak-f[1600] (FIPS 202) on 25 locals, and the
 * padding of Keccak-256. It exports `memory` and `hash(at, length, out)`, which hashes a range of the memory into 32 bytes of the memory.
 */

/** Bytes that one permutation absorbs. */
export const rateBytes = 136;
const rounds = 24;
const laneBytes = 8;
/** Address of the round constants. */
export const roundConstantsAt = 0;
/** Address of the padded last block. */
const lastBlockAt = rounds * laneBytes;
/** Bytes at the start of the memory that belong to the module. */
export const moduleBytes = 512;

const i32 = 0x7f;
const i64 = 0x7e;
const noValue = 0x40;
const op = {
  loop: 0x03,
  if: 0x04,
  end: 0x0b,
  branchIf: 0x0d,
  equalsZero: 0x45,
  lessThan: 0x49,
  add: 0x6a,
  subtract: 0x6b,
  and: 0x83,
  xor: 0x85,
  rotateLeft: 0x89,
} as const;

type Code = readonly (number | Code)[];

// Parameters, then locals.
const at = 0;
const length = 1;
const out = 2;
const round = 3;
const isLast = 4;
const firstLane = 5;
const lane = (index: number): number => firstLane + index;
const moved = (index: number): number => lane(25) + index;
const column = (index: number): number => moved(25) + index;
const mixed = column(5);

const get = (local: number): Code => [0x20, local];
const set = (local: number): Code => [0x21, local];
const tee = (local: number): Code => [0x22, local];
const int = (value: number): Code => [0x41, ...signed(value)];
const long = (value: number): Code => [0x42, ...signed(value)];
const loadLong = (offset: number): Code => [0x29, 0, ...unsigned(offset)];
const storeLong = (offset: number): Code => [0x37, 0, ...unsigned(offset)];
const storeByte: Code = [0x3a, 0, 0];
const copyMemory: Code = [0xfc, 0x0a, 0, 0];
const fillMemory: Code = [0xfc, 0x0b, 0];
const range = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index);

/** The module's binary form. */
export function createKeccakModule(): Uint8Array<ArrayBuffer> {
  const locals: Code = [2, 2, i32, mixed - firstLane + 1, i64];
  const body = flatten([locals, hashCode()]);
  return Uint8Array.from(
    flatten([
      [0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
      section(1, [1, 0x60, 3, i32, i32, i32, 0]),
      section(3, [1, 0]),
      section(5, [1, 0, 1]),
      section(7, [2, name("memory"), 2, 0, name("hash"), 0, 0]),
      section(10, [1, unsigned(body.length), body]),
    ]),
  );
}

/** The constants of step iota, by the shift register of FIPS 202, section 3.2.5. */
export function roundConstants(): readonly bigint[] {
  let register = 1;
  return range(rounds).map(() => {
    let constant = 0n;
    for (let exponent = 0; exponent <= 6; exponent += 1) {
      if ((register & 1) === 1) constant |= 1n << BigInt(2 ** exponent - 1);
      register = (register << 1) ^ ((register >> 7) * 0x171);
    }
    return constant;
  });
}

function hashCode(): Code {
  const absorb = range(rateBytes / laneBytes).map((index) => [
    [get(lane(index)), get(at), loadLong(index * laneBytes), op.xor, set(lane(index))],
  ]);
  const answer = range(4).map((index) => [get(out), get(lane(index)), storeLong(index * laneBytes)]);
  return [
    [op.loop, noValue],
    [get(length), int(rateBytes), op.lessThan, op.if, noValue, padCode(), op.end],
    [absorb, permuteCode()],
    [get(at), int(rateBytes), op.add, set(at), get(length), int(rateBytes), op.subtract, set(length)],
    [get(isLast), op.equalsZero, op.branchIf, 0, op.end],
    [answer, op.end],
  ];
}

/** Code that copies the remaining bytes to the memory after the round constants, and pads them there to one last block. */
function padCode(): Code {
  return [
    [int(lastBlockAt), int(0), int(rateBytes), fillMemory],
    [int(lastBlockAt), get(at), get(length), copyMemory],
    [int(lastBlockAt), get(length), op.add, int(1), storeByte],
    // The first and the last padding bit may share one byte.
    [int(lastBlockAt + rateBytes - 1), int(0x80), int(0x81), get(length), int(rateBytes - 1), op.subtract],
    [0x1b, storeByte],
    [int(lastBlockAt), set(at), int(1), set(isLast)],
  ];
}

function permuteCode(): Code {
  return [
    [int(0), set(round), op.loop, noValue],
    [parityCode(), moveCode(), chiCode()],
    [get(round), int(laneBytes), op.add, tee(round), int(rounds * laneBytes), op.lessThan, op.branchIf, 0, op.end],
  ];
}

/** The column parities of step theta. */
function parityCode(): Code {
  return range(5).map((x) => [
    get(lane(x)),
    range(4).map((row) => [get(lane(x + 5 * (row + 1))), op.xor]),
    set(column(x)),
  ]);
}

/** The rest of theta, with rho and pi: each lane is mixed, rotated, and moved. */
function moveCode(): Code {
  const rotations = rotationsOfLanes();
  return range(5).map((x) => [
    [get(column((x + 4) % 5)), get(column((x + 1) % 5)), long(1), op.rotateLeft, op.xor, set(mixed)],
    range(5).map((y) => {
      const target = y + 5 * ((2 * x + 3 * y) % 5);
      const rotation = long(rotations[x + 5 * y] ?? 0);
      return [get(lane(x + 5 * y)), get(mixed), op.xor, rotation, op.rotateLeft, set(moved(target))];
    }),
  ]);
}

/** Chi and iota. */
function chiCode(): Code {
  return range(25).map((index) => {
    const row = index - (index % 5);
    const [next, afterNext] = [row + ((index + 1) % 5), row + ((index + 2) % 5)];
    const bit = [get(moved(next)), long(-1), op.xor, get(moved(afterNext)), op.and];
    const constant = index === 0 ? [get(round), loadLong(roundConstantsAt), op.xor] : [];
    return [get(moved(index)), bit, op.xor, constant, set(lane(index))];
  });
}

function rotationsOfLanes(): readonly number[] {
  const rotations = range(25).map(() => 0);
  let [x, y] = [1, 0];
  for (const step of range(24)) {
    rotations[x + 5 * y] = (((step + 1) * (step + 2)) / 2) % 64;
    [x, y] = [y, (2 * x + 3 * y) % 5];
  }
  return rotations;
}

function section(id: number, content: Code): Code {
  const bytes = flatten(content);
  return [id, unsigned(bytes.length), bytes];
}

function name(text: string): Code {
  return [text.length, range(text.length).map((index) => text.charCodeAt(index))];
}

function flatten(code: Code): readonly number[] {
  return code.flatMap((item) => (typeof item === "number" ? [item] : flatten(item)));
}

/** LEB128 of a non-negative integer. */
function unsigned(value: number): readonly number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...unsigned(value >>> 7)];
}

/** Signed LEB128. */
function signed(value: number): readonly number[] {
  return value >= -0x40 && value < 0x40 ? [value & 0x7f] : [(value & 0x7f) | 0x80, ...signed(value >> 7)];
}
