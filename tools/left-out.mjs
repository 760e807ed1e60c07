const linesMax = 20;

/** One line for each test that was left out, at most twenty. `npm test` prints them, so that nobody believes that these tests passed. */
export function toLeftOut(files) {
  const names = files.flatMap((file) =>
    [...file.children.allTests("skipped")].map((test) => `LEFT OUT ${file.relativeModuleId} > ${test.fullName}`),
  );
  const others = names.length - linesMax;
  return others > 0 ? [...names.slice(0, linesMax), `LEFT OUT ${others} others`] : names;
}
