import { median } from "./statistics.mjs";

/**
 * One row of the table.
 * @typedef {object} Figure
 * @property {string} name
 * @property {string} unit
 * @property {string} target such as "≥ 0.9"; empty for a figure without a target
 * @property {readonly number[]} values one for each run
 * @property {number} median
 * @property {number} min
 * @property {number} max
 * @property {"met" | "missed" | "—"} verdict whether the median meets the target
 */

/**
 * @param {{ readonly name: string, readonly unit: string, readonly values: readonly number[], readonly atLeast?: number, readonly below?: number }} measured
 * @returns {Figure}
 */
export function toFigure({ name, unit, values, atLeast, below }) {
  const middle = median(values);
  const row = { name, unit, values, median: middle, min: Math.min(...values), max: Math.max(...values) };
  if (atLeast !== undefined) return { ...row, target: `≥ ${atLeast}`, verdict: middle >= atLeast ? "met" : "missed" };
  if (below !== undefined) return { ...row, target: `< ${below}`, verdict: middle < below ? "met" : "missed" };
  return { ...row, target: "", verdict: "—" };
}
