/**
 * The first of `count` places at which `test` holds, when it holds at every later one too; `count` when it holds nowhere. Near places are
 * found with few questions: it looks at the first, and then in steps that double.
 */
export async function findFirstTrue(count: number, test: (place: number) => Promise<boolean>): Promise<number> {
  let first = 0;
  let known = count;
  for (let step = 1; known === count && first < known; step *= 2) {
    const place = Math.min(first + step, count) - 1;
    if (await test(place)) known = place;
    else first = place + 1;
  }
  while (first < known) {
    const middle = (first + known) >>> 1;
    if (await test(middle)) known = middle;
    else first = middle + 1;
  }
  return known;
}
