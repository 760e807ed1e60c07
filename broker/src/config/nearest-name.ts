/** The known name that `name` is probably a typo of, or undefined if none is close. Ignores case. */
export function findNearestName(name: string, known: readonly string[]): string | undefined {
  const wanted = name.toLowerCase();
  const ranked = known
    .map((candidate) => ({ candidate, distance: editDistance(wanted, candidate.toLowerCase()) }))
    .toSorted((left, right) => left.distance - right.distance);
  const nearest = ranked[0];
  if (nearest === undefined || nearest.distance > editsMax(nearest.candidate)) return undefined;
  return nearest.candidate;
}

/** The end of an error message about `name`: `; did you mean …?`, or nothing if no known name is close. */
export function suggestNearest(name: string, known: readonly string[]): string {
  const nearest = findNearestName(name, known);
  return nearest === undefined ? "" : `; did you mean ${nearest}?`;
}

function editsMax(candidate: string): number {
  return Math.max(2, Math.floor(candidate.length / 3));
}

/** Edit distance: insertions, deletions, replacements and swaps of neighbours between two texts. */
function editDistance(left: string, right: string): number {
  let beforeLast: readonly number[] = [];
  let last: readonly number[] = Array.from({ length: right.length + 1 }, (_, column) => column);
  for (let row = 1; row <= left.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= right.length; column += 1) {
      current.push(editCell({ left, right, row, column, current, last, beforeLast }));
    }
    beforeLast = last;
    last = current;
  }
  return last[right.length] ?? 0;
}

interface EditCell {
  readonly left: string;
  readonly right: string;
  readonly row: number;
  readonly column: number;
  readonly current: readonly number[];
  readonly last: readonly number[];
  readonly beforeLast: readonly number[];
}

function editCell({ left, right, row, column, current, last, beforeLast }: EditCell): number {
  const isSame = left[row - 1] === right[column - 1];
  const isSwap = left[row - 1] === right[column - 2] && left[row - 2] === right[column - 1];
  const swapped = isSwap ? costAt(beforeLast, column - 2) + 1 : Number.POSITIVE_INFINITY;
  const replaced = costAt(last, column - 1) + (isSame ? 0 : 1);
  return Math.min(costAt(current, column - 1) + 1, costAt(last, column) + 1, replaced, swapped);
}

function costAt(cells: readonly number[], index: number): number {
  return cells[index] ?? Number.POSITIVE_INFINITY;
}
