const columns = ["figure", "unit", "target", "median", "min", "max", "verdict"];

/** The figures as a Markdown table. @param {readonly import("./figure.mjs").Figure[]} figures */
export function toTable(figures) {
  const rows = figures.map((figure) => [
    figure.name,
    figure.unit,
    figure.target,
    ...[figure.median, figure.min, figure.max].map(toText),
    figure.verdict,
  ]);
  const widths = columns.map((title, index) => Math.max(title.length, ...rows.map((row) => row[index].length)));
  const line = (cells) => `| ${cells.map((cell, index) => cell.padEnd(widths[index])).join(" | ")} |`;
  return [line(columns), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("\n");
}

function toText(value) {
  if (Math.abs(value) >= 100) return String(Math.round(value));
  return value.toFixed(Math.abs(value) >= 10 ? 1 : 2);
}
