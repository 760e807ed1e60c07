import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

/**
 * Finds a program outside the project: the file that the environment variable names, else the one on the PATH; undefined if there is none.
 * @param {string} name @param {string} variable
 */
export function findProgram(name, variable) {
  const named = process.env[variable];
  const folders = (process.env.PATH ?? "").split(delimiter).filter((folder) => folder !== "");
  return named ? named : folders.map((folder) => join(folder, name)).find(isExecutable);
}

function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
