/**
 * Finds the first of `count` indexes for which `test` holds; returns `count` if there is none. `test` must hold for every later index too.
 * Exponential search: small indexes need few calls.
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
