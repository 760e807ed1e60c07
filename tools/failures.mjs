/** Longest text of an error, in characters: enough for the last output of a process that ended. */
const reasonLengthMax = 800;

/**
 * One line for each failed test, suite and file, and for each error outside of all tests, with the error's text. `npm test` prints these lines at the end of
 * its output, where a reader finds them at once.
 */
export function toFailures(files, unhandled) {
  const inFiles = files.flatMap((file) => [
    ...[file, ...file.children.allSuites()].flatMap((suite) => toLines(file, suite.fullName ?? "", suite.errors())),
    ...[...file.children.allTests("failed")].flatMap((test) => toLines(file, test.fullName, test.result().errors)),
  ]);
  return [...inFiles, ...unhandled.map((error) => `FAILED outside of all tests: ${toReason(error)}`)];
}

function toLines(file, name, errors) {
  const place = [file.relativeModuleId, name].filter((part) => part !== "").join(" > ");
  return errors.slice(0, 1).map((error) => `FAILED ${place}: ${toReason(error)}`);
}

function toReason(error) {
  const lines = String(error?.message ?? error).split("\n");
  const text = lines.map((line) => line.trim()).filter((line) => line !== "");
  return text.join(" | ").slice(0, reasonLengthMax);
}
